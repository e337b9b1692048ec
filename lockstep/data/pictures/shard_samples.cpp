#include "lockstep/data/pictures/shard_samples.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/hash.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr std::string_view kShardsMark = "lockstep shards 2\n";
constexpr int64_t kMaxShardsBytes = int64_t{4} << 30;

static_assert(sizeof(ShardSample) == 16, "the file holds them as they are");

std::string key_of(const std::filesystem::path& shard) {
  return std::filesystem::absolute(shard).lexically_normal().string();
}

/// The bytes in front of their digest; none if it is not theirs.
std::string_view undamaged(std::string_view bytes) {
  uint64_t digest = 0;
  if (bytes.size() < sizeof(digest)) return {};
  const auto body = bytes.substr(0, bytes.size() - sizeof(digest));
  std::memcpy(&digest, bytes.data() + body.size(), sizeof(digest));
  return digest == hash_of(body) ? body : std::string_view();
}

/// Takes what a file holds, one after another; nothing once it is at its end.
class Taken {
 public:
  explicit Taken(std::string_view bytes) : rest_(bytes) {}

  std::optional<std::string_view> bytes(uint64_t count) {
    if (count > rest_.size()) return std::nullopt;
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <typename Number>
  bool number(Number& value) {
    const auto taken = bytes(sizeof(value));
    if (taken) std::memcpy(&value, taken->data(), sizeof(value));
    return taken.has_value();
  }

 private:
  std::string_view rest_;
};

bool take_samples(Taken& file, const ShardState& state, ShardSamples& samples) {
  uint64_t count = 0;
  // A sample takes more than 16 bytes of its shard, so the product cannot overflow either.
  if (!file.number(count) || count > state.size / sizeof(ShardSample)) return false;
  const auto bytes = file.bytes(count * sizeof(ShardSample));
  if (!bytes) return false;
  samples.resize(count);
  if (count > 0) std::memcpy(samples.data(), bytes->data(), bytes->size());
  return std::all_of(samples.begin(), samples.end(), [&](const ShardSample& one) {
    return one.begin <= state.size && one.bytes <= state.size - one.begin && one.label >= 0;
  });
}

template <typename Number>
void put_number(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

KnownShards KnownShards::load(const std::filesystem::path& file) {
  const std::string bytes = read_if_there(file, kMaxShardsBytes);
  Taken taken(undamaged(bytes));
  KnownShards known;
  if (taken.bytes(kShardsMark.size()) != kShardsMark) return {};
  while (true) {
    uint64_t length = 0;
    Known one;
    if (!taken.number(length)) return {};
    if (length == 0) return known;
    const auto name = taken.bytes(length);
    const bool whole = name && taken.number(one.state.size) && taken.number(one.state.changed_ns) &&
                       take_samples(taken, one.state, one.samples);
    if (!whole) return {};
    known.shards_[std::string(*name)] = std::move(one);
  }
}

void KnownShards::save(const std::filesystem::path& file) const {
  std::string bytes(kShardsMark);
  for (const auto& [name, known] : shards_) {
    put_number(bytes, uint64_t{name.size()});
    bytes += name;
    put_number(bytes, known.state.size);
    put_number(bytes, known.state.changed_ns);
    put_number(bytes, uint64_t{known.samples.size()});
    bytes.append(reinterpret_cast<const char*>(known.samples.data()),
                 known.samples.size() * sizeof(ShardSample));
  }
  put_number(bytes, uint64_t{0});
  put_number(bytes, hash_of(bytes));
  try {
    make_folder(file.parent_path());
    write_file_atomically(file, bytes);
  } catch (const Error&) {
    return;  // a full disk, or a folder of another user
  }
}

const ShardSamples* KnownShards::find(const std::filesystem::path& shard, const ShardState& state,
                                      int64_t num_classes) const {
  const auto found = shards_.find(key_of(shard));
  if (found == shards_.end() || found->second.state != state) return nullptr;
  const auto& samples = found->second.samples;
  const bool fit = std::all_of(samples.begin(), samples.end(),
                               [&](const ShardSample& one) { return one.label < num_classes; });
  return fit ? &samples : nullptr;
}

void KnownShards::add(const std::filesystem::path& shard, const ShardState& state,
                      ShardSamples samples) {
  shards_[key_of(shard)] = {state, std::move(samples)};
}

}  // namespace lockstep::inline internal
