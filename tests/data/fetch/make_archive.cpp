#include "tests/data/fetch/make_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

namespace lockstep::testing {

void make_archive(const std::filesystem::path& path, const std::vector<ArchiveEntry>& entries) {
  ::archive* writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_ustar(writer);
  ASSERT_EQ(archive_write_open_filename(writer, path.c_str()), ARCHIVE_OK);
  for (const auto& each : entries) {
    ::archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, each.path.c_str());
    archive_entry_set_filetype(entry, each.link_to.empty() ? AE_IFREG : AE_IFLNK);
    archive_entry_set_perm(entry, 0644);
    if (!each.link_to.empty()) archive_entry_set_symlink(entry, each.link_to.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(each.bytes.size()));
    ASSERT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
    archive_write_data(writer, each.bytes.data(), each.bytes.size());
    archive_entry_free(entry);
  }
  archive_write_free(writer);
}

std::string cifar_record(int label, int pixel) {
  return std::string(1, static_cast<char>(label)) + std::string(3072, static_cast<char>(pixel));
}

}  // namespace lockstep::testing
