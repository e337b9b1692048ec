#include "lockstep/data/pictures/folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "lockstep/base/counted.h"
#include "lockstep/data/pictures/index.h"
#include "lockstep/data/pictures/listing.h"
#include "lockstep/data/pictures/parallel.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWorthKeeping = 10'000;  // pictures; fewer are listed in a blink

using FolderId = std::pair<dev_t, ino_t>;

FolderId id_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("read {}: {}", folder.string(), std::strerror(errno)));
  }
  return {status.st_dev, status.st_ino};
}

/// The pictures of one class, as names relative to the data set's folder.
class ClassReader {
 public:
  ClassReader(const fs::path& folder, const std::string& name, FolderListing& listing)
      : folder_(folder), listing_(listing) {
    read(name);
  }

  std::vector<std::string> sorted() {
    std::sort(names_.begin(), names_.end(), [](const auto& a, const auto& b) {
      const auto parts = [](std::string_view name) {
        const size_t slash = name.rfind('/');
        return std::pair(name.substr(0, slash), name.substr(slash));
      };
      return parts(a) < parts(b);
    });
    return std::move(names_);
  }

 private:
  void read(const std::string& below) {
    const FolderId id = id_of(folder_ / below);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return;
    above_.push_back(id);
    const FolderEntries entries = listing_.read(below);
    for (const auto& name : entries.pictures) names_.push_back(below + "/" + name);
    for (const auto& name : entries.folders) read(below + "/" + name);
    above_.pop_back();
  }

  const fs::path& folder_;
  FolderListing& listing_;
  std::vector<FolderId> above_;
  std::vector<std::string> names_;
};

/// FNV-1a: any hash would do that is the same on every machine and in every version.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  hash ^= hash >> 32;  // the last bytes alone would decide the highest bits
  return hash * 0x9E3779B97F4A7C15;
}

/// The hash that separates the pictures for evaluation, which have it or a smaller one.
uint64_t limit_of(const std::vector<std::string>& names, int64_t held_out) {
  std::vector<uint64_t> hashes;
  for (const auto& name : names) hashes.push_back(hash_of(name));
  const size_t count = std::max<size_t>(1, names.size() / static_cast<size_t>(held_out));
  std::nth_element(hashes.begin(), hashes.begin() + static_cast<ptrdiff_t>(count - 1),
                   hashes.end());
  return hashes[count - 1];
}

std::vector<std::string> chosen_of(std::vector<std::string> names, const FolderOptions& options) {
  if (options.held_out > 0 && options.split != Split::kAll && !names.empty()) {
    const bool one = names.size() == 1;  // it is for training
    const uint64_t limit = one ? 0 : limit_of(names, options.held_out);
    std::erase_if(names, [&](const std::string& name) {
      const bool evaluates = !one && hash_of(name) <= limit;
      return evaluates != (options.split == Split::kTest);
    });
  }
  const auto count = std::max(1LL, std::llround(static_cast<double>(names.size()) * options.ratio));
  names.resize(std::min(names.size(), static_cast<size_t>(count)));
  return names;
}

std::string no_picture(const fs::path& folder) {
  return fmt::format("{} holds no picture (.jpg, .jpeg, .png, .bmp, .webp) in a sub-folder",
                     folder.string());
}

PictureClasses classes_in(FolderListing& listing, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("no folder {}", folder.string()));
  }
  auto names = listing.read("").folders;
  if (names.empty()) throw Error(ErrorCode::kNotFound, no_picture(folder));
  std::sort(names.begin(), names.end());
  return PictureClasses::named(std::move(names));
}

std::string none_chosen(const fs::path& folder, const FolderOptions& options) {
  if (options.held_out == 0 || options.split != Split::kTest) return no_picture(folder);
  return fmt::format("{}: no class has two pictures, of which one could be held out",
                     folder.string());
}

void warn_of_empty_classes(PictureIndex& index, const PictureClasses& classes,
                           const fs::path& folder, const std::vector<size_t>& empty) {
  if (empty.empty()) return;
  constexpr size_t kNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, empty.size()); ++i) {
    names += (i == 0 ? "" : ", ") + classes.names[empty[i]];
  }
  if (empty.size() > kNamed) names += ", ...";
  index.add_warning(fmt::format("{}: no picture of {}: {}", folder.string(),
                                counted(static_cast<int64_t>(empty.size()), "class", "classes"),
                                names));
}

}  // namespace

PictureClasses folder_classes(const fs::path& folder) {
  FolderListing listing(folder);
  return classes_in(listing, folder);
}

PictureIndex index_folder(const fs::path& folder, const FolderOptions& options,
                          const std::optional<PictureClasses>& classes) {
  FolderListing listing(folder, options.listing);
  const PictureClasses found = classes_in(listing, folder);
  const PictureClasses& all = classes ? *classes : found;
  const ClassNumbers numbers(all);
  std::vector<std::pair<int64_t, size_t>> order;  // label, folder
  for (size_t i = 0; i < found.names.size(); ++i) {
    const int64_t label = numbers.of_name(found.names[i]);
    if (label < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: training {}", (folder / found.names[i]).string(),
                              numbers.no_class(found.names[i])));
    }
    order.emplace_back(label, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::vector<std::string>> names(found.names.size());
  for_each_in_parallel(names.size(), [&](size_t i) {
    names[i] = chosen_of(ClassReader(folder, found.names[i], listing).sorted(), options);
  });
  listing.keep(kWorthKeeping);
  size_t count = 0;
  size_t bytes = 0;
  for (const auto& of_class : names) {
    count += of_class.size();
    for (const auto& name : of_class) bytes += name.size();
  }
  if (count == 0) throw Error(ErrorCode::kNotFound, none_chosen(folder, options));
  PictureIndex index(folder, all);
  index.reserve(count, bytes);
  std::vector<size_t> empty;
  for (const auto& [label, i] : order) {
    if (names[i].empty()) empty.push_back(i);
    for (const auto& name : std::exchange(names[i], {})) index.add(name, label);
  }
  warn_of_empty_classes(index, found, folder, empty);
  return index;
}

}  // namespace lockstep::inline internal
