#include "lockstep/data/pictures/listing.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/heap.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListingMark = "lockstep pictures 3";
constexpr std::string_view kListingEnd = "end";
constexpr int64_t kUnsettled = std::numeric_limits<int64_t>::min();  // no folder's time
constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

[[noreturn]] void cannot_list(const fs::path& folder, const std::error_code& failure) {
  throw Error(ErrorCode::kIo, fmt::format("read {}: {}", folder.string(), failure.message()));
}

int64_t changed_ns(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    cannot_list(folder, std::error_code(errno, std::generic_category()));
  }
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The parts of a text, one after another; nothing behind the last one.
class Parts {
 public:
  explicit Parts(const NameText& text) : window_(text) {}

  /// Of the next part.
  uint64_t place() const { return place_; }

  /// Valid until the next call.
  std::optional<std::string_view> next() {
    const auto part = window_.part(place_);
    if (part) place_ += part->size() + 1;
    return part;
  }

  std::optional<int64_t> next_number() {
    const auto part = next();
    return part ? as_number<int64_t>(*part) : std::nullopt;
  }

  /// Calls `found` with each of them; false if there are not so many.
  template <typename Found>
  bool next_names(int64_t count, const Found& found) {
    for (int64_t i = 0; i < count; ++i) {
      const auto name = next();
      if (!name) return false;
      found(*name);
    }
    return count >= 0;
  }

 private:
  NameWindow window_;
  uint64_t place_ = 0;
};

/// The names in `text`, each with a zero byte, in the order of their bytes.
std::string sorted(const std::string& text, int64_t count) {
  std::vector<std::string_view> names;
  names.reserve(static_cast<size_t>(count));
  for (size_t at = 0; at < text.size(); at += names.back().size() + 1) {
    names.emplace_back(text.c_str() + at);
  }
  std::sort(names.begin(), names.end());
  std::string all;
  all.reserve(text.size());
  for (const auto name : names) (all += name) += '\0';
  return all;
}

/// Mounts of object stores are of this kind, and may not change a folder's time with its entries.
bool is_of_fuse(const fs::path& folder) {
  constexpr auto kFuse = 0x65735546;
  struct statfs info {};
  return ::statfs(folder.c_str(), &info) == 0 && info.f_type == kFuse;
}

}  // namespace

bool has_settled(int64_t changed_ns) {
  const auto settled = std::chrono::system_clock::now() - std::chrono::seconds(10);
  return changed_ns <=
         std::chrono::duration_cast<std::chrono::nanoseconds>(settled.time_since_epoch()).count();
}

bool is_ignored_name(std::string_view name) {
  return name.starts_with('.') || name == "__MACOSX";
}

bool is_picture_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kEnds = {".jpg", ".jpeg", ".png", ".bmp", ".webp"};
  const size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const size_t dot = last.rfind('.');
  if (last.starts_with('.') || dot == std::string_view::npos) return false;
  const std::string end = ascii_lower(std::string(last.substr(dot)));
  return std::find(kEnds.begin(), kEnds.end(), end) != kEnds.end();
}

FolderListing::FolderListing(fs::path folder, fs::path file)
    : folder_(std::move(folder)), file_(is_of_fuse(folder_) ? fs::path() : std::move(file)) {
  mark_ = fs::absolute(folder_).lexically_normal().string();
  if (!file_.empty()) text_ = NameText::open(file_, file_.string());
  if (text_ == nullptr) return;
  try {
    before_ = parse(*text_, mark_);
  } catch (const Error&) {
    return;  // a fault of the disk
  }
}

FolderListing::Folders FolderListing::parse(const NameText& text, const std::string& mark) {
  Parts parts(text);
  if (parts.next() != kListingMark || parts.next() != mark) return {};
  Folders folders;
  while (true) {
    const uint64_t place = parts.place();
    const auto part = parts.next();
    if (!part) return {};
    const std::string below(*part);
    const auto changed = parts.next_number();
    if (!changed) return below == kListingEnd ? folders : Folders();
    const auto num_folders = parts.next_number();
    const auto num_pictures = parts.next_number();
    if (!num_folders || !num_pictures) return {};
    Known& known = folders[below];
    known.changed_ns = *changed;
    const auto keep = [&](std::string_view name) { known.folders.emplace_back(name); };
    if (!parts.next_names(*num_folders, keep)) return {};
    known.names = {place, parts.place(), 0, *num_pictures};
    if (!parts.next_names(*num_pictures, [](std::string_view) {})) return {};
    known.names.bytes = parts.place() - known.names.begin;
  }
}

FolderListing::Known FolderListing::read_entries(const fs::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) cannot_list(folder, std::error_code(errno, std::generic_category()));
  Known known;
  std::string pictures;
  // Of a link it is that of its target. A broken one has none, and is a fault of the picture.
  const auto type_of = [&](const dirent& entry) -> unsigned {
    if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return entry.d_type;
    struct stat status {};
    const bool found = ::fstatat(::dirfd(entries.get()), entry.d_name, &status, 0) == 0;
    return found ? IFTODT(status.st_mode) : unsigned{DT_REG};
  };
  errno = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (is_ignored_name(name)) continue;
    const unsigned type = type_of(*entry);
    if (type == DT_DIR) {
      known.folders.emplace_back(name);
    } else if (type == DT_REG && is_picture_name(name)) {
      (pictures += name) += '\0';
      ++known.names.count;
    }
    errno = 0;
  }
  if (errno != 0) cannot_list(folder, std::error_code(errno, std::generic_category()));
  std::sort(known.folders.begin(), known.folders.end());
  known.text = sorted(pictures, known.names.count);
  known.names.bytes = known.text.size();
  return known;
}

std::vector<std::string> FolderListing::read(const std::string& below) {
  const fs::path folder = folder_ / below;
  const int64_t changed = changed_ns(folder);
  const auto before = before_.find(below);
  const bool is_known = before != before_.end() && before->second.changed_ns == changed;
  const bool settled = has_settled(changed);  // before it is read: a change may come meanwhile
  Known known = is_known ? before->second : read_entries(folder);
  known.changed_ns = is_known || settled ? changed : kUnsettled;
  if (!is_known) ++num_read_;
  auto folders = known.folders;
  MutexLock lock(mutex_);
  now_[below] = std::move(known);
  return folders;
}

FolderListing::Places FolderListing::put_all(
    const Folders& folders, const std::function<void(std::string_view bytes)>& put) const {
  Places places;
  uint64_t place = 0;
  const auto put_part = [&](std::string_view part) {
    put(part);
    put(std::string_view("\0", 1));
    place += part.size() + 1;
  };
  put_part(kListingMark);
  put_part(mark_);
  for (const auto& [below, known] : folders) {
    const uint64_t folder = place;
    put_part(below);
    put_part(std::to_string(known.changed_ns));
    put_part(std::to_string(known.folders.size()));
    put_part(std::to_string(known.names.count));
    for (const auto& name : known.folders) put_part(name);
    places.push_back({folder, place, known.names.bytes, known.names.count});
    put(known.text);
    const uint64_t known_bytes = known.text.empty() ? known.names.bytes : 0;
    for (uint64_t at = 0; at < known_bytes;) {
      std::string block(std::min<uint64_t>(known_bytes - at, kBlockBytes), '\0');
      text_->read(known.names.begin + at, block.data(), block.size());
      put(block);
      at += block.size();
    }
    place += known.names.bytes;
  }
  put_part(kListingEnd);
  return places;
}

std::shared_ptr<const NameText> FolderListing::put_into_memory(const Folders& folders,
                                                               Places& places) const {
  std::string bytes;
  size_t size = 0;
  put_all(folders, [&](std::string_view part) { size += part.size(); });
  bytes.reserve(size);
  places = put_all(folders, [&](std::string_view part) { bytes += part; });
  return std::make_shared<const NameText>(std::move(bytes));
}

std::shared_ptr<const NameText> FolderListing::put_into_file(const Folders& folders,
                                                             Places& places) const {
  std::shared_ptr<const NameText> text;
  const auto fill = [&](int fd) {
    std::string block;
    const auto flush = [&](std::string_view bytes) {
      write_all(fd, bytes.data(), bytes.size(), file_.string());
    };
    places = put_all(folders, [&](std::string_view part) {
      if (block.size() + part.size() > kBlockBytes) flush(std::exchange(block, {}));
      if (part.size() > kBlockBytes) return flush(part);
      block += part;
    });
    flush(block);
    // This very file: another rank may replace it by one of its own at any time.
    text = NameText::open(fmt::format("/proc/self/fd/{}", fd), file_.string());
  };
  try {
    make_folder(file_.parent_path());
    write_file_atomically(file_, fill);
    return text;
  } catch (const Error&) {
    return nullptr;  // a full disk, or a folder of another user
  }
}

std::shared_ptr<const NameText> FolderListing::names(int64_t least) {
  MutexLock lock(mutex_);
  if (text_ != nullptr && num_read_ == 0) return text_;
  int64_t pictures = 0;
  for (const auto& [below, known] : now_) pictures += known.names.count;
  Places places;
  std::shared_ptr<const NameText> text;
  if (!file_.empty() && pictures >= least) text = put_into_file(now_, places);
  if (text == nullptr) text = put_into_memory(now_, places);
  auto place = places.begin();
  for (auto& [below, known] : now_) {
    known.names = *place++;
    std::string().swap(known.text);  // an assignment would keep its memory
  }
  text_ = std::move(text);
  before_ = {};
  return_freed_memory();  // some 20 bytes a picture
  return text_;
}

FolderNames FolderListing::of(const std::string& below) {
  MutexLock lock(mutex_);
  return now_.at(below).names;
}

}  // namespace lockstep::inline internal
