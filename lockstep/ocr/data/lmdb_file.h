#pragma once
// Reads values from an untrusted LMDB file.
//
// liblmdb maps the file and trusts it. A truncated file ends the process by SIGBUS, a damaged page
// by an assertion or worse. Data sets are downloaded and copied, so here each page is read by pread
// and every offset in it is checked. Source: LMDB 0.9's lmdb.h and mdb.c (on-disk structures).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"

namespace lockstep::ocr {

/// The main database of an LMDB environment, as of its last commit. Thread-safe.
class LmdbFile {
 public:
  /// `path` is the file data.mdb, or its folder. Supports little-endian files of page sizes from
  /// 512 to 65536 bytes, without DUPSORT, INTEGERKEY or REVERSEKEY. Errors: kNotFound, kIo,
  /// kCorrupt (no LMDB file; shorter than its last page requires).
  explicit LmdbFile(const std::filesystem::path& path);

  /// The value of a key, if any. Cost: one pread per level of the tree (3 or 4 for millions of
  /// records), and one for a large value. Errors: kCorrupt (an invalid page), kIo.
  std::optional<std::string> get(std::string_view key) const;

  int64_t num_entries() const { return static_cast<int64_t>(root_.entries); }
  int64_t num_bytes() const { return num_bytes_; }
  const std::string& name() const { return name_; }  ///< The file's path.

 private:
  struct Root {
    uint64_t page = 0;
    uint64_t entries = 0;
    uint64_t last_page = 0;
    uint64_t transaction = 0;
    uint16_t flags = 0;
  };
  class Page;

  void read_meta();
  std::optional<Root> read_root(std::string_view meta);
  std::string read_bytes(uint64_t offset, uint64_t size) const;
  Page read_page(uint64_t number) const;
  std::string read_overflow(uint64_t number, uint64_t size) const;
  [[noreturn]] void corrupt(const std::string& why) const;

  std::string name_;
  UniqueFd fd_;
  int64_t num_bytes_ = 0;
  uint64_t page_bytes_ = 0;
  Root root_;
};

}  // namespace lockstep::ocr
