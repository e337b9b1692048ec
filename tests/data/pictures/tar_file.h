#pragma once
// Tar archives that tests make, by libarchive.

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::inline internal {

struct TarEntry {
  std::string name;
  std::string bytes;
  int kind = AE_IFREG;
};

/// `format`: "ustar", "pax", "gnutar" or "v7tar".
inline std::string tar_of(const std::vector<TarEntry>& entries, const char* format = "ustar") {
  std::string bytes(size_t{1} << 20, '\0');
  for (const auto& one : entries) bytes.resize(bytes.size() + one.bytes.size() + 4096);
  size_t used = 0;
  ::archive* writer = archive_write_new();
  EXPECT_EQ(archive_write_set_format_by_name(writer, format), ARCHIVE_OK);
  archive_write_set_bytes_per_block(writer, 512);
  EXPECT_EQ(archive_write_open_memory(writer, bytes.data(), bytes.size(), &used), ARCHIVE_OK);
  for (const auto& one : entries) {
    ::archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, one.name.c_str());
    archive_entry_set_filetype(entry, static_cast<unsigned>(one.kind));
    archive_entry_set_perm(entry, 0644);
    if (one.kind == AE_IFLNK) archive_entry_set_symlink(entry, "target");
    archive_entry_set_size(entry, static_cast<la_int64_t>(one.bytes.size()));
    EXPECT_EQ(archive_write_header(writer, entry), ARCHIVE_OK) << archive_error_string(writer);
    archive_write_data(writer, one.bytes.data(), one.bytes.size());
    archive_entry_free(entry);
  }
  EXPECT_EQ(archive_write_close(writer), ARCHIVE_OK);
  archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

inline void write_tar(const std::filesystem::path& path, const std::vector<TarEntry>& entries) {
  const std::string bytes = tar_of(entries);
  write_file_atomically(path, std::string_view(bytes));
}

}  // namespace lockstep::inline internal
