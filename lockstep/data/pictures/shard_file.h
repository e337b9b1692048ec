#pragma once
// A tar archive on disk, of which parts are read.

#include <filesystem>
#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/data/pictures/shard_samples.h"
#include "lockstep/data/pictures/tar.h"

namespace lockstep {

/// Any number of threads may read.
class ShardFile {
 public:
  /// Errors: kNotFound, kIo.
  explicit ShardFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const ShardState& state() const { return state_; }
  /// Up to `count` bytes from offset `at`. Errors: kIo.
  size_t read(uint64_t at, char* to, size_t count) const;
  /// Valid as long as this object.
  TarBytes tar() const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  ShardState state_;
};

}  // namespace lockstep
