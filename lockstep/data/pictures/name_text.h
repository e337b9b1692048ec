#pragma once
// Names of millions of pictures, in one text: of a file, whose pages all ranks of a host share, or
// in memory.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// Whether an open file of a file system of this kind (statfs(2), f_type) can be read until it is
/// closed, whoever replaces or removes it. On NFS and its like other hosts may take it away.
bool keeps_open_files(int64_t kind);

/// The names of so many pictures are put into a file; fewer are read in a blink.
inline constexpr int64_t kManyNames = 10'000;

/// Bytes that do not change. Any number of threads may read.
///
/// A file is read by pread(2) and not mapped: if somebody cuts it short, that is an error, and not
/// the signal SIGBUS.
class NameText {
 public:
  /// In memory.
  explicit NameText(std::string bytes) : name_("memory"), bytes_(std::move(bytes)) {}

  /// Null if there is no file to read. One on a file system without keeps_open_files() is read into
  /// memory. `name`: for errors.
  static std::shared_ptr<const NameText> open(const std::filesystem::path& path, std::string name);

  /// These bytes in a file without a name, on the file system of `folder`; it goes with the
  /// process. Null if there can be none that keeps_open_files(), as on a full disk.
  static std::shared_ptr<const NameText> put(const std::filesystem::path& folder,
                                             std::string_view bytes);

  /// Copies up to `bytes` bytes from `begin`, and returns how many there were. Errors: kIo.
  size_t read_some(uint64_t begin, char* to, size_t bytes) const;
  /// Copies all of them. Errors: DataChanged if they are no longer there.
  void read(uint64_t begin, char* to, size_t bytes) const;

  /// Throws DataChanged: a name less is no damaged picture, which another could replace.
  [[noreturn]] void lost(const std::string& why) const;

  bool is_in_memory() const { return !fd_; }

 private:
  NameText(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}

  std::string name_;
  std::string bytes_;
  UniqueFd fd_;  // then there are no bytes_
};

/// Reads a text from front to back, in blocks. Views are valid until the next call.
class NameWindow {
 public:
  explicit NameWindow(const NameText& text) : text_(text) {}

  /// Errors: DataChanged.
  std::string_view at(uint64_t begin, size_t bytes);
  /// Up to the next zero byte; nothing if there is none within the next 64 KiB. Errors: kIo.
  std::optional<std::string_view> part(uint64_t begin);

 private:
  /// What the window has from `begin` on.
  std::string_view from(uint64_t begin) const;
  void fill(uint64_t begin, size_t least);

  const NameText& text_;
  uint64_t begin_ = 0;
  size_t size_ = 0;
  std::string block_;
};

}  // namespace lockstep::inline internal
