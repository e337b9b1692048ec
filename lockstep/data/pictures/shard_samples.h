#pragma once
// The samples of one shard, and those of earlier runs in a file.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::inline internal {

struct ShardSample {
  uint64_t begin = 0;  ///< Of the picture in the shard.
  uint32_t bytes = 0;
  int32_t label = 0;
};
using ShardSamples = std::vector<ShardSample>;

/// A state of a shard; another size or time means that it has changed.
struct ShardState {
  uint64_t size = 0;
  int64_t changed_ns = 0;
  bool operator==(const ShardState&) const = default;
};

/// What is known of shards from run to run, by their absolute paths: their headers need not be read
/// again. Filled by one thread; then any number of threads may look.
///
/// The file, all numbers little-endian: the mark "lockstep shards 2\n"; for each shard the length
/// of its path (8 bytes) and the path, size, time, number of samples (8 bytes each) and 16 bytes a
/// sample; a length of 0; last the first 8 bytes, as a number, of the SHA-256 of all before it.
class KnownShards {
 public:
  /// A file that is missing or damaged counts as empty.
  static KnownShards load(const std::filesystem::path& file);
  /// A file that cannot be written is no error: the next run reads the shards.
  void save(const std::filesystem::path& file) const;

  /// Null if it is unknown in this state, or has a label that is not below `num_classes`.
  const ShardSamples* find(const std::filesystem::path& shard, const ShardState& state,
                           int64_t num_classes) const;
  void add(const std::filesystem::path& shard, const ShardState& state, ShardSamples samples);

 private:
  struct Known {
    ShardState state;
    ShardSamples samples;
  };
  std::map<std::string, Known> shards_;
};

}  // namespace lockstep::inline internal
