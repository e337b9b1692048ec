#include "lockstep/data/pictures/name_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/data/usable_samples.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kMaxTextBytes = int64_t{4} << 30;
constexpr size_t kWindowBytes = size_t{64} << 10;

}  // namespace

bool keeps_open_files(int64_t kind) {
  constexpr int64_t kZfs = 0x2FC12FC1, kBcachefs = 0xCA451A4E;
  switch (kind) {
    case EXT4_SUPER_MAGIC:  // also of ext2 and ext3
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case kZfs:
    case kBcachefs:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<const NameText> NameText::open(const std::filesystem::path& path,
                                               std::string name) {
  try {
    UniqueFd fd = open_to_read(path);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
    struct statfs info {};
    if (::fstatfs(fd.get(), &info) == 0 && keeps_open_files(info.f_type)) {
      return std::shared_ptr<const NameText>(new NameText(std::move(name), std::move(fd)));
    }
    return std::make_shared<const NameText>(read_file(path, kMaxTextBytes));
  } catch (const Error&) {
    return nullptr;
  }
}

std::shared_ptr<const NameText> NameText::put(const std::filesystem::path& folder,
                                              std::string_view bytes) {
  try {
    make_folder(folder);
    UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd && (errno == EOPNOTSUPP || errno == EISDIR)) {  // as older kernels' overlayfs
      std::string name = (folder / ".names-XXXXXX").string();
      fd = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
      if (fd) ::unlink(name.c_str());
    }
    struct statfs info {};
    if (!fd || ::fstatfs(fd.get(), &info) != 0 || !keeps_open_files(info.f_type)) return nullptr;
    write_all(fd.get(), bytes.data(), bytes.size(), folder.string());
    return std::shared_ptr<const NameText>(new NameText(folder.string(), std::move(fd)));
  } catch (const Error&) {
    return nullptr;
  }
}

size_t NameText::read_some(uint64_t begin, char* to, size_t bytes) const {
  if (!fd_) return begin < bytes_.size() ? bytes_.copy(to, bytes, begin) : 0;
  return read_at(fd_.get(), begin, to, bytes, name_);
}

void NameText::read(uint64_t begin, char* to, size_t bytes) const {
  std::string why = "has become shorter";
  try {
    if (read_some(begin, to, bytes) == bytes) return;
  } catch (const Error& error) {
    why = error.what();
  }
  lost(why);
}

void NameText::lost(const std::string& why) const {
  throw DataChanged(ErrorCode::kIo, fmt::format("{}: {}; this run has the names of its pictures "
                                                "there, and the next one lists them anew",
                                                name_, why));
}

std::string_view NameWindow::from(uint64_t begin) const {
  if (begin < begin_ || begin >= begin_ + size_) return {};
  return std::string_view(block_.data(), size_).substr(begin - begin_);
}

void NameWindow::fill(uint64_t begin, size_t least) {
  block_.resize(std::max(kWindowBytes, least));
  begin_ = begin;
  size_ = 0;
  size_ = text_.read_some(begin, block_.data(), block_.size());
}

std::string_view NameWindow::at(uint64_t begin, size_t bytes) {
  if (from(begin).size() < bytes) fill(begin, bytes);
  const auto found = from(begin);
  if (found.size() >= bytes) return found.substr(0, bytes);
  text_.read(begin, block_.data(), bytes);  // its error has the cause
  return std::string_view(block_).substr(0, bytes);
}

std::optional<std::string_view> NameWindow::part(uint64_t begin) {
  size_t end = from(begin).find('\0');
  if (end == std::string_view::npos) {
    fill(begin, 0);
    end = from(begin).find('\0');
  }
  if (end == std::string_view::npos) return std::nullopt;
  return from(begin).substr(0, end);
}

}  // namespace lockstep::inline internal
