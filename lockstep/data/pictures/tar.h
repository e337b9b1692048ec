#pragma once
// The members of a tar archive by their place in it, without reading their contents.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/unique_fd.h"
#include "lockstep/data/pictures/shard_samples.h"

namespace lockstep::inline internal {

/// The bytes of an archive.
struct TarBytes {
  uint64_t size = 0;
  /// Copies up to `count` bytes from offset `at`, and returns how many there were.
  std::function<size_t(uint64_t at, char* to, size_t count)> read;
  std::string name;  ///< For errors.
};

/// A regular file in an archive.
struct TarMember {
  std::string name;
  uint64_t begin = 0;  ///< Offset of its contents.
  uint64_t bytes = 0;
  std::string_view head;  ///< The first of its contents, up to 512 bytes; valid within the call.
};

/// Calls `found` for each regular file, in their order. Folders, links and devices are passed over.
///
/// Formats: POSIX (USTAR, PAX with `path` and `size`), GNU (long names, sizes in base 256) and
/// Unix V7. One read of 1,024 bytes for each member.
/// Errors: kCorrupt naming the byte offset: a header with a wrong checksum or number, contents or
/// headers that end behind the archive's end, no end mark, a sparse file.
/// Source: POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar's manual, "Basic Tar Format".
void for_each_tar_member(const TarBytes& archive,
                         const std::function<void(const TarMember& member)>& found);

/// The name in the header that ends at offset `begin`, for messages. It lacks the rest of a name of
/// more than 100 bytes in GNU's and PAX's form. Empty if there is no header.
std::string tar_name_before(const TarBytes& archive, uint64_t begin);

/// An archive on disk, of which parts are read.
/// Any number of threads may read it.
class ShardFile {
 public:
  /// Errors: kNotFound, kIo.
  explicit ShardFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const ShardState& state() const { return state_; }
  /// Whether the path still names this file, in this state.
  bool is_still(const ShardState& state) const;
  /// Up to `count` bytes from offset `at`. Errors: kIo.
  size_t read(uint64_t at, char* to, size_t count) const;
  /// Valid as long as this object.
  TarBytes tar() const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  std::pair<uint64_t, uint64_t> id_;  ///< Device and inode, which no other has while it is open.
  ShardState state_;
};

}  // namespace lockstep::inline internal
