#include "lockstep/data/pictures/listing.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListingMark = "lockstep pictures 1";
constexpr std::string_view kListingEnd = "end";
constexpr int64_t kMaxListingBytes = int64_t{4} << 30;

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

FolderEntries read_entries(const fs::path& folder) {
  FolderEntries entries;
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code gone;  // a broken link
    if (entry->is_directory(gone)) {
      entries.folders.push_back(std::move(name));
    } else if (is_picture_name(name)) {
      entries.pictures.push_back(std::move(name));
    }
  }
  if (failure) cannot_list(folder, failure);
  return entries;
}

/// The parts of a file, one after another; nothing behind the last one.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : rest_(bytes) {}

  std::optional<std::string_view> next() {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    const auto part = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return part;
  }

  std::optional<int64_t> next_number() {
    const auto part = next();
    int64_t number = 0;
    if (!part) return std::nullopt;
    const auto [stop, error] = std::from_chars(part->data(), part->data() + part->size(), number);
    if (error != std::errc() || stop != part->data() + part->size()) return std::nullopt;
    return number;
  }

  /// False if there are not so many.
  bool next_names(int64_t count, std::vector<std::string>& names) {
    for (int64_t i = 0; i < count; ++i) {
      const auto name = next();
      if (!name) return false;
      names.emplace_back(*name);
    }
    return true;
  }

 private:
  std::string_view rest_;
};

void put(std::string& bytes, std::string_view part) {
  bytes += part;
  bytes += '\0';
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

bool is_picture_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kEnds = {".jpg", ".jpeg", ".png", ".bmp", ".webp"};
  const size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const size_t dot = last.rfind('.');
  if (last.starts_with('.') || dot == std::string_view::npos) return false;
  std::string end(last.substr(dot));
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kEnds.begin(), kEnds.end(), end) != kEnds.end();
}

FolderListing::FolderListing(fs::path folder, fs::path file)
    : folder_(std::move(folder)), file_(is_of_fuse(folder_) ? fs::path() : std::move(file)) {
  mark_ = fs::absolute(folder_).lexically_normal().string();
  if (!file_.empty()) before_ = parse(read_if_there(file_, kMaxListingBytes), mark_);
}

FolderListing::Folders FolderListing::parse(const std::string& bytes, const std::string& mark) {
  Parts parts(bytes);
  if (parts.next() != kListingMark || parts.next() != mark) return {};
  Folders folders;
  for (auto below = parts.next(); below; below = parts.next()) {
    const auto changed = parts.next_number();
    if (!changed) return *below == kListingEnd ? folders : Folders();
    const auto num_folders = parts.next_number();
    const auto num_pictures = parts.next_number();
    Known& known = folders[std::string(*below)];
    known.changed_ns = *changed;
    const bool whole = num_folders && num_pictures &&
                       parts.next_names(*num_folders, known.entries.folders) &&
                       parts.next_names(*num_pictures, known.entries.pictures);
    if (!whole) return {};
  }
  return {};
}

FolderEntries FolderListing::read(const std::string& below) {
  const fs::path folder = folder_ / below;
  Known known{changed_ns(folder), {}};
  const auto before = before_.find(below);
  if (before != before_.end() && before->second.changed_ns == known.changed_ns) {
    known.entries = before->second.entries;
  } else {
    known.entries = read_entries(folder);
    ++num_read_;
  }
  if (file_.empty()) return std::move(known.entries);
  MutexLock lock(mutex_);
  return (now_[below] = std::move(known)).entries;
}

void FolderListing::keep(int64_t least) {
  if (file_.empty() || num_read_ == 0) return;
  std::string bytes;
  put(bytes, kListingMark);
  put(bytes, mark_);
  int64_t pictures = 0;
  MutexLock lock(mutex_);
  for (const auto& [below, known] : now_) {
    if (!has_settled(known.changed_ns)) continue;
    put(bytes, below);
    put(bytes, std::to_string(known.changed_ns));
    put(bytes, std::to_string(known.entries.folders.size()));
    put(bytes, std::to_string(known.entries.pictures.size()));
    for (const auto& name : known.entries.folders) put(bytes, name);
    for (const auto& name : known.entries.pictures) put(bytes, name);
    pictures += std::ssize(known.entries.pictures);
  }
  put(bytes, kListingEnd);
  if (pictures < least) return;
  try {
    make_folder(file_.parent_path());
    write_file_atomically(file_, bytes);
  } catch (const Error&) {
    return;  // a full disk, or a folder of another user
  }
}

}  // namespace lockstep::inline internal
