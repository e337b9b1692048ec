#include "lockstep/data/fetch/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

struct Closer {
  void operator()(::archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<::archive, Closer>;

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kCorrupt, fmt::format("archive {}: {}", path.string(), why));
}

void check(int status, const Reader& reader, const std::filesystem::path& path) {
  if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return;
  const char* why = archive_error_string(reader.get());
  damaged(path, why == nullptr ? "cannot be read" : why);
}

bool is_wanted(const std::string& name) {
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const auto& files = cifar10_files(split);
    if (std::find(files.begin(), files.end(), name) != files.end()) return true;
  }
  return name == "batches.meta.txt";
}

void copy_entry(const Reader& reader, const std::filesystem::path& archive, int fd,
                const std::string& name) {
  const void* block = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  while (true) {
    const int status = archive_read_data_block(reader.get(), &block, &size, &offset);
    if (status == ARCHIVE_EOF) return;
    check(status, reader, archive);
    write_all(fd, block, size, name);
  }
}

}  // namespace

void unpack_cifar10(const std::filesystem::path& archive, const std::filesystem::path& dir) {
  const Reader reader(archive_read_new());
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  check(archive_read_open_filename(reader.get(), archive.c_str(), size_t{1} << 18), reader,
        archive);
  int unpacked = 0;
  ::archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    check(status, reader, archive);
    const char* path = archive_entry_pathname(entry);
    const auto name = std::filesystem::path(path == nullptr ? "" : path).filename().string();
    if (archive_entry_filetype(entry) != AE_IFREG || !is_wanted(name)) continue;
    write_file_atomically(dir / name, [&](int fd) { copy_entry(reader, archive, fd, name); });
    ++unpacked;
  }
  if (unpacked == 0) damaged(archive, "holds none of CIFAR-10's binary files");
}

}  // namespace lockstep::inline internal
