#include "lockstep/data/pictures/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <limits>
#include <unordered_map>
#include <utility>

#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/listing.h"
#include "lockstep/data/pictures/parallel.h"
#include "lockstep/data/pictures/tar.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 1'000'000;
constexpr size_t kWorthKnowing = 10'000;  // samples; the headers of fewer are read in a blink

[[noreturn]] void bad_pattern(const std::string& pattern, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("shards '{}': {}", pattern, why));
}

/// What stands between two braces: 000..127, or a,b.
std::vector<std::string> choices_of(const std::string& inside, const std::string& pattern) {
  std::vector<std::string> choices;
  const size_t dots = inside.find("..");
  if (dots == std::string::npos) {
    for (size_t at = 0; at <= inside.size();) {
      const size_t end = std::min(inside.find(',', at), inside.size());
      choices.push_back(inside.substr(at, end - at));
      at = end + 1;
    }
    return choices;
  }
  const std::string first = inside.substr(0, dots), last = inside.substr(dots + 2);
  const auto number = [&](const std::string& text) {
    const auto value = as_number<uint64_t>(text);
    if (!value || *value > kMaxNames * 1000) {
      bad_pattern(pattern,
                  fmt::format("{{{}}} is no range of numbers, as {{000..127}} is", inside));
    }
    return *value;
  };
  const uint64_t low = number(first), high = number(last);
  if (low > high) bad_pattern(pattern, fmt::format("the range {{{}}} falls", inside));
  if (high - low >= kMaxNames) bad_pattern(pattern, "more than a million names");
  const size_t digits = first.starts_with('0') || last.starts_with('0') ? first.size() : 1;
  for (uint64_t i = low; i <= high; ++i) choices.push_back(fmt::format("{:0{}}", i, digits));
  return choices;
}

enum class MemberKind : uint8_t { kPicture, kClass, kOther };

MemberKind kind_of(const std::string& extension) {
  constexpr std::array<std::string_view, 5> kPictures = {"jpg", "jpeg", "png", "bmp", "webp"};
  if (extension == "cls") return MemberKind::kClass;
  const bool picture = std::find(kPictures.begin(), kPictures.end(), extension) != kPictures.end();
  return picture ? MemberKind::kPicture : MemberKind::kOther;
}

/// The samples of one shard.
class ShardReader {
 public:
  ShardReader(const ShardFile& shard, const PictureClasses& classes)
      : shard_(shard), classes_(classes) {}

  ShardSamples read() {
    for_each_tar_member(shard_.tar(), [&](const TarMember& member) { take(member); });
    check_whole();
    return std::move(samples_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, ErrorCode code = ErrorCode::kCorrupt) const {
    // Names and classes come from the archive and may hold any byte.
    throw Error(code, fmt::format("{}: {}", shard_.path().string(), without_controls(what)));
  }

  void take(const TarMember& member) {
    auto [name, extension] = split_member_name(member.name);
    const MemberKind kind = kind_of(extension);
    if (kind == MemberKind::kOther) return;
    const auto [found, is_new] = numbers_.emplace(std::move(name), samples_.size());
    if (is_new) samples_.push_back({kNoPicture, 0, kNoLabel});
    ShardSample& sample = samples_[found->second];
    if (kind == MemberKind::kClass) {
      if (sample.label != kNoLabel) refuse(fmt::format("two members of the name {}", member.name));
      sample.label = class_of(member);
      return;
    }
    if (sample.begin != kNoPicture) {
      refuse(
          fmt::format("sample '{}' has two pictures; the second: {}", found->first, member.name));
    }
    if (member.bytes > std::numeric_limits<uint32_t>::max()) {
      refuse(fmt::format("{} has {} bytes, more than any picture", member.name, member.bytes));
    }
    sample.begin = member.begin;
    sample.bytes = static_cast<uint32_t>(member.bytes);
  }

  int32_t class_of(const TarMember& member) const {
    std::string_view digits = member.head;
    while (!digits.empty() && std::isspace(static_cast<unsigned char>(digits.back())) != 0) {
      digits.remove_suffix(1);
    }
    const int64_t label = as_number<int64_t>(digits).value_or(-1);
    if (label >= 0 && label < classes_.count) return static_cast<int32_t>(label);
    refuse(fmt::format("{} holds '{}', which is no class; allowed: 0 to {}", member.name,
                       digits.substr(0, 20), classes_.count - 1),
           ErrorCode::kInvalidArgument);
  }

  void check_whole() const {
    for (const auto& [name, number] : numbers_) {
      const ShardSample& sample = samples_[number];
      if (sample.begin == kNoPicture) {
        refuse(fmt::format("sample '{}' has no picture (.jpg, .jpeg, .png, .bmp, .webp)", name));
      }
      if (sample.label == kNoLabel) refuse(fmt::format("sample '{}' has no class (.cls)", name));
    }
  }

  static constexpr uint64_t kNoPicture = 0;  // a header comes before any contents
  static constexpr int32_t kNoLabel = -1;

  const ShardFile& shard_;
  const PictureClasses& classes_;
  ShardSamples samples_;
  std::unordered_map<std::string, size_t> numbers_;
};

void keep(const fs::path& known, const std::vector<std::string>& paths,
          const std::vector<ShardState>& states, const std::vector<ShardSamples>& samples) {
  KnownShards now;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (has_settled(states[i].changed_ns)) now.add(paths[i], states[i], samples[i]);
  }
  now.save(known);
}

void warn_of_empty_shards(PictureIndex& index, const std::string& pattern,
                          const std::vector<std::string>& paths,
                          const std::vector<ShardSamples>& samples) {
  int64_t empty = 0;
  std::string first;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (samples[i].empty() && ++empty == 1) first = paths[i];
  }
  if (empty == 0) return;
  index.add_warning(fmt::format("shards '{}': {} of {} hold no sample; the first: {}", pattern,
                                empty, paths.size(), first));
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  const size_t open = pattern.find('{');
  const size_t close = pattern.find('}');
  if (open == std::string::npos && close == std::string::npos) return {pattern};
  if (open == std::string::npos || close == std::string::npos || close < open) {
    bad_pattern(pattern, "a brace without its partner");
  }
  const std::string inside = pattern.substr(open + 1, close - open - 1);
  if (inside.find('{') != std::string::npos) bad_pattern(pattern, "braces within braces");
  const auto rests = expand_braces(pattern.substr(close + 1));
  const auto choices = choices_of(inside, pattern);
  if (choices.size() * rests.size() > kMaxNames) bad_pattern(pattern, "more than a million names");
  std::vector<std::string> names;
  for (const auto& choice : choices) {
    for (const auto& rest : rests) names.push_back(pattern.substr(0, open) + choice + rest);
  }
  return names;
}

MemberName split_member_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string::npos || dot == base) return {};
  return {name.substr(0, dot), ascii_lower(name.substr(dot + 1))};
}

PictureIndex index_shards(const std::string& pattern, const PictureClasses& classes,
                          const fs::path& known) {
  const auto paths = expand_braces(pattern);
  const KnownShards before = known.empty() ? KnownShards() : KnownShards::load(known);
  std::vector<ShardState> states(paths.size());
  std::vector<ShardSamples> samples(paths.size());
  std::atomic<bool> any_read = false;
  for_each_in_parallel(paths.size(), [&](size_t i) {
    const ShardFile shard(paths[i]);
    states[i] = shard.state();
    const auto* found = before.find(paths[i], states[i], classes.count);
    samples[i] = found != nullptr ? *found : ShardReader(shard, classes).read();
    if (found == nullptr) any_read = true;
  });
  size_t count = 0;
  for (const auto& of_shard : samples) count += of_shard.size();
  if (count == 0) {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("shards '{}' hold no sample: NAME.jpg (.png, ...) with NAME.cls; the first: {}",
                    pattern, paths[0]));
  }
  if (!known.empty() && any_read && count >= kWorthKnowing) keep(known, paths, states, samples);
  PictureIndex index({}, classes);
  index.reserve(count);
  warn_of_empty_shards(index, pattern, paths, samples);
  for (size_t i = 0; i < paths.size(); ++i) {
    index.begin_shard(paths[i], states[i]);
    for (const auto& one : std::exchange(samples[i], {})) {
      index.add_at(one.begin, one.bytes, one.label);
    }
  }
  return index;
}

}  // namespace lockstep::inline internal
