#include "lockstep/data/pictures/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "lockstep/data/pictures/parallel.h"
#include "lockstep/data/pictures/shard_file.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 1'000'000;

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
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size() || value > kMaxNames * 1000) {
      bad_pattern(pattern,
                  fmt::format("{{{}}} is no range of numbers, as {{000..127}} is", inside));
    }
    return value;
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
  ShardReader(const fs::path& path, const PictureClasses& classes)
      : shard_(path), classes_(classes) {
    for_each_tar_member(shard_.tar(), [&](const TarMember& member) { take(member); });
    check_whole();
  }

  struct Sample {
    uint64_t begin = 0;
    uint32_t bytes = 0;
    int32_t label = -1;  ///< -1: none yet.
    bool has_picture = false;
  };
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  [[noreturn]] void refuse(const std::string& what, ErrorCode code = ErrorCode::kCorrupt) const {
    throw Error(code, fmt::format("{}: {}", shard_.path().string(), what));
  }

  void take(const TarMember& member) {
    auto [name, extension] = split_member_name(member.name);
    const MemberKind kind = kind_of(extension);
    if (kind == MemberKind::kOther) return;
    const auto [found, is_new] = numbers_.emplace(std::move(name), samples_.size());
    if (is_new) samples_.emplace_back();
    Sample& sample = samples_[found->second];
    if (kind == MemberKind::kClass) {
      if (sample.label >= 0) refuse(fmt::format("two members of the name {}", member.name));
      sample.label = class_of(member);
      return;
    }
    if (sample.has_picture) {
      refuse(
          fmt::format("sample '{}' has two pictures; the second: {}", found->first, member.name));
    }
    if (member.bytes > std::numeric_limits<uint32_t>::max()) {
      refuse(fmt::format("{} has {} bytes, more than any picture", member.name, member.bytes));
    }
    sample.has_picture = true;
    sample.begin = member.begin;
    sample.bytes = static_cast<uint32_t>(member.bytes);
  }

  int32_t class_of(const TarMember& member) const {
    std::string_view digits = member.head;
    while (!digits.empty() && std::isspace(static_cast<unsigned char>(digits.back())) != 0) {
      digits.remove_suffix(1);
    }
    int64_t label = -1;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), label);
    const bool whole = error == std::errc() && stop == digits.data() + digits.size();
    if (whole && label >= 0 && label < classes_.count) return static_cast<int32_t>(label);
    refuse(fmt::format("{} holds '{}', which is no class; allowed: 0 to {}", member.name,
                       digits.substr(0, 20), classes_.count - 1),
           ErrorCode::kInvalidArgument);
  }

  void check_whole() const {
    for (const auto& [name, number] : numbers_) {
      const Sample& sample = samples_[number];
      if (!sample.has_picture) {
        refuse(fmt::format("sample '{}' has no picture (.jpg, .jpeg, .png, .bmp, .webp)", name));
      }
      if (sample.label < 0) refuse(fmt::format("sample '{}' has no class (.cls)", name));
    }
  }

  ShardFile shard_;
  const PictureClasses& classes_;
  std::vector<Sample> samples_;
  std::unordered_map<std::string, size_t> numbers_;
};

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
  MemberName parts{name.substr(0, dot), name.substr(dot + 1)};
  std::transform(parts.extension.begin(), parts.extension.end(), parts.extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return parts;
}

PictureIndex index_shards(const std::string& pattern, const PictureClasses& classes) {
  const auto paths = expand_braces(pattern);
  std::vector<std::vector<ShardReader::Sample>> samples(paths.size());
  for_each_in_parallel(paths.size(),
                       [&](size_t i) { samples[i] = ShardReader(paths[i], classes).samples(); });
  PictureIndex index({}, classes);
  size_t count = 0;
  for (const auto& of_shard : samples) count += of_shard.size();
  if (count == 0) {
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("shards '{}' hold no sample: NAME.jpg (.png, ...) with NAME.cls", pattern));
  }
  index.reserve(count, 0);
  for (size_t i = 0; i < paths.size(); ++i) {
    index.begin_shard(paths[i]);
    for (const auto& one : std::exchange(samples[i], {})) {
      index.add_member(one.begin, one.bytes, one.label);
    }
  }
  return index;
}

}  // namespace lockstep
