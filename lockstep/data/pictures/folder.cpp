#include "lockstep/data/pictures/folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/counted.h"
#include "lockstep/base/heap.h"
#include "lockstep/base/text.h"
#include "lockstep/data/pictures/index.h"
#include "lockstep/data/pictures/listing.h"
#include "lockstep/data/pictures/name_text.h"
#include "lockstep/data/pictures/parallel.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

using FolderId = std::pair<dev_t, ino_t>;

FolderId id_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("read {}: {}", folder.string(), std::strerror(errno)));
  }
  return {status.st_dev, status.st_ino};
}

/// The folders of one class, its own among them, in the order of their paths' bytes.
class ClassFolders {
 public:
  ClassFolders(const fs::path& folder, const std::string& name, FolderListing& listing)
      : folder_(folder), listing_(listing) {
    read(name);
    std::sort(found_.begin(), found_.end());
  }

  std::vector<std::string> found() { return std::move(found_); }

 private:
  void read(const std::string& below) {
    const FolderId id = id_of(folder_ / below);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return;
    above_.push_back(id);
    found_.push_back(below);
    for (const auto& name : listing_.read(below)) read(below + "/" + name);
    above_.pop_back();
  }

  const fs::path& folder_;
  FolderListing& listing_;
  std::vector<FolderId> above_;
  std::vector<std::string> found_;
};

/// FNV-1a: any hash would do that is the same on every machine and in every version.
class NameHash {
 public:
  NameHash& add(std::string_view text) {
    for (const char byte : text) hash_ = (hash_ ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
    return *this;
  }
  uint64_t value() const {
    // The last bytes alone would decide the highest bits.
    return (hash_ ^ (hash_ >> 32)) * 0x9E3779B97F4A7C15;
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

/// The pictures of one class that are chosen, in the order of their folders and names.
class ClassPictures {
 public:
  ClassPictures(std::vector<std::string> folders, const FolderOptions& options,
                FolderListing& listing, std::shared_ptr<const NameText> text)
      : folders_(std::move(folders)), listing_(listing), text_(std::move(text)) {
    if (options.held_out > 0 && options.split != Split::kAll) separate(options);
    if (!separates_) {
      for (const auto& below : folders_) count_ += listing_.of(below).count;
    }
    const auto part = std::llround(static_cast<double>(count_) * options.ratio);
    count_ = std::min<int64_t>(count_, std::max(1LL, part));
  }

  int64_t count() const { return count_; }
  /// That of the class itself is the first.
  const std::vector<std::string>& folders() const { return folders_; }

  /// `by_text`: names stay in the text, which is in a file.
  void add_to(PictureIndex& index, int64_t label, bool by_text) const {
    int64_t left = count_;
    uint64_t folder = 0;  // the last one; the place of the text's beginning is none
    std::string path;
    for_each([&](const std::string& below, const FolderNames& names, uint64_t begin,
                 std::string_view name) {
      if (left == 0 || !is_chosen(below, name)) return;
      --left;
      if (!by_text) {
        ((path = below) += '/') += name;
        return index.add(path, label);
      }
      if (names.folder != folder) index.begin_folder(text_, names.folder, below.size());
      folder = names.folder;
      index.add_at(begin, name.size(), label);
    });
  }

 private:
  template <typename Found>
  void for_each(const Found& found) const {
    NameWindow window(*text_);
    for (const auto& below : folders_) {
      const FolderNames names = listing_.of(below);
      uint64_t begin = names.begin;
      for (int64_t i = 0; i < names.count; ++i) {
        const auto name = window.part(begin);
        if (!name) text_->lost("has lost a name");
        found(below, names, begin, *name);
        begin += name->size() + 1;
      }
    }
  }

  static uint64_t hash_of(const std::string& below, std::string_view name) {
    return NameHash().add(below).add("/").add(name).value();
  }

  /// Finds the hash that separates the pictures for evaluation, which have it or a smaller one.
  void separate(const FolderOptions& options) {
    std::vector<uint64_t> hashes;
    for_each([&](const std::string& below, const FolderNames&, uint64_t, std::string_view name) {
      hashes.push_back(hash_of(below, name));
    });
    if (hashes.empty()) return;
    separates_ = true;
    evaluates_ = options.split == Split::kTest;
    has_one_ = hashes.size() == 1;  // it is for training
    const auto held_out =
        std::max<size_t>(1, hashes.size() / static_cast<size_t>(options.held_out));
    const auto last = hashes.begin() + static_cast<ptrdiff_t>(held_out - 1);
    std::nth_element(hashes.begin(), last, hashes.end());
    limit_ = *last;
    count_ =
        std::count_if(hashes.begin(), hashes.end(), [&](auto hash) { return is_chosen(hash); });
  }

  bool is_chosen(uint64_t hash) const { return (!has_one_ && hash <= limit_) == evaluates_; }
  bool is_chosen(const std::string& below, std::string_view name) const {
    return !separates_ || is_chosen(hash_of(below, name));
  }

  std::vector<std::string> folders_;
  FolderListing& listing_;
  std::shared_ptr<const NameText> text_;
  bool separates_ = false;
  bool evaluates_ = false;
  bool has_one_ = false;
  uint64_t limit_ = 0;
  int64_t count_ = 0;
};

std::string no_picture(const fs::path& folder) {
  return fmt::format("{} holds no picture (.jpg, .jpeg, .png, .bmp, .webp) in a sub-folder",
                     folder.string());
}

PictureClasses classes_in(FolderListing& listing, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("no folder {}", folder.string()));
  }
  auto names = listing.read("");
  if (names.empty()) throw Error(ErrorCode::kNotFound, no_picture(folder));
  return PictureClasses::named(std::move(names));
}

std::string none_chosen(const fs::path& folder, const FolderOptions& options) {
  if (options.held_out == 0 || options.split != Split::kTest) return no_picture(folder);
  return fmt::format("{}: no class has two pictures, of which one could be held out",
                     folder.string());
}

constexpr size_t kNamed = 5;  // of many

std::string first_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + without_controls(names[i]);
  }
  return names.size() > kNamed ? text + ", ..." : text;
}

void warn_of_empty_classes(PictureIndex& index, const PictureClasses& classes,
                           const fs::path& folder, const std::vector<size_t>& empty) {
  if (empty.empty()) return;
  std::vector<std::string> names;
  for (const size_t i : empty) names.push_back(classes.names[i]);
  index.add_warning(fmt::format("{}: no picture of {}: {}", folder.string(),
                                counted(static_cast<int64_t>(empty.size()), "class", "classes"),
                                first_of(names)));
}

/// The folders right in `above`, without its own name; `all` are of one class.
std::vector<std::string> folders_in(const std::string& above, const std::vector<std::string>& all) {
  std::vector<std::string> names;
  for (const auto& below : all) {
    if (!below.starts_with(above + "/")) continue;
    auto name = below.substr(above.size() + 1);
    if (name.find('/') == std::string::npos) names.push_back(std::move(name));
  }
  return names;
}

void warn_of_one_class(PictureIndex& index, const fs::path& folder,
                       const std::vector<std::string>& of_class) {
  std::string line =
      fmt::format("{}: only one class, {}", folder.string(), without_controls(of_class.front()));
  std::string above = of_class.front();
  auto names = folders_in(above, of_class);
  while (names.size() == 1) {
    above += "/" + names.front();
    names = folders_in(above, of_class);
  }
  if (!names.empty()) {
    line += fmt::format(": the classes are probably in {}, which has the folders {}",
                        without_controls((folder / above).string()), first_of(names));
  }
  index.add_warning(line);
}

void warn_of_splits(PictureIndex& index, const fs::path& folder, const PictureClasses& classes) {
  const auto splits = SplitFolders::among(classes.names);
  if (splits.train.empty() || splits.eval.empty()) return;
  index.add_warning(fmt::format(
      "{}: {} and {} count as classes; if they are pictures for training and for evaluation, name "
      "{} as the folder",
      folder.string(), splits.train, splits.eval, (folder / splits.train).string()));
}

/// Of each class, by several threads.
std::vector<std::vector<std::string>> read_folders(const PictureClasses& classes,
                                                   const fs::path& folder, FolderListing& listing) {
  const size_t count = classes.names.size();
  std::vector<std::vector<std::string>> folders(count);
  for_each_in_parallel(count, [&](size_t i) {
    folders[i] = ClassFolders(folder, classes.names[i], listing).found();
  });
  return folders;
}

/// The class's label, and its number among `found`; in the order of labels. Errors:
/// kInvalidArgument for one that `all` lacks.
std::vector<std::pair<int64_t, size_t>> labels_of(const PictureClasses& found,
                                                  const PictureClasses& all,
                                                  const fs::path& folder) {
  const ClassNumbers numbers(all);
  std::vector<std::pair<int64_t, size_t>> order;
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
  return order;
}

PictureIndex list_and_index(const fs::path& folder, const FolderOptions& options,
                            const std::optional<PictureClasses>& classes) {
  FolderListing listing(folder, options.listing);
  const PictureClasses found = classes_in(listing, folder);
  const PictureClasses& all = classes ? *classes : found;
  const auto order = labels_of(found, all, folder);
  auto folders = read_folders(found, folder, listing);
  const auto text = listing.names(kManyNames);
  std::vector<ClassPictures> pictures;
  for (auto& of_class : folders) pictures.emplace_back(std::move(of_class), options, listing, text);
  int64_t count = 0, num_folders = 0;
  for (const auto& of_class : pictures) {
    count += of_class.count();
    num_folders += std::ssize(of_class.folders());
  }
  if (count == 0) throw Error(ErrorCode::kNotFound, none_chosen(folder, options));
  PictureIndex index(folder, all);
  // An index by text takes 16 bytes a picture, and 24 a folder: too many if each has one or two.
  const bool by_text = !text->is_in_memory() && num_folders <= count / 3;
  if (by_text) index.reserve(static_cast<size_t>(count));
  std::vector<size_t> empty;
  for (const auto& [label, i] : order) {
    if (pictures[i].count() == 0) empty.push_back(i);
    pictures[i].add_to(index, label, by_text);
  }
  index.shrink();
  warn_of_empty_classes(index, found, folder, empty);
  if (classes) return index;
  if (found.names.size() - empty.size() == 1) {
    const auto only = std::find_if(pictures.begin(), pictures.end(),
                                   [](const auto& of_class) { return of_class.count() > 0; });
    warn_of_one_class(index, folder, only->folders());
  }
  warn_of_splits(index, folder, found);
  return index;
}

/// The folder whose name comes first in `names`.
template <size_t kCount>
std::string first_among(const std::vector<std::string>& folders,
                        const std::array<std::string_view, kCount>& names) {
  for (const auto name : names) {
    const auto has_name = [&](const std::string& folder) { return ascii_lower(folder) == name; };
    // Lower case wins: it stands behind capitals in the order of bytes.
    const auto found = std::find_if(folders.rbegin(), folders.rend(), has_name);
    if (found != folders.rend()) return *found;
  }
  return "";
}

constexpr std::array<std::string_view, 2> kTrainNames = {"train", "training"};
constexpr std::array<std::string_view, 6> kEvalNames = {"val",  "valid",   "validation",
                                                        "test", "testing", "eval"};

}  // namespace

SplitFolders SplitFolders::among(const std::vector<std::string>& folders) {
  SplitFolders found{first_among(folders, kTrainNames), first_among(folders, kEvalNames)};
  found.others =
      static_cast<size_t>(std::count_if(folders.begin(), folders.end(), [&](const auto& folder) {
        const std::string name = ascii_lower(folder);
        return folder != found.train &&
               std::find(kEvalNames.begin(), kEvalNames.end(), name) == kEvalNames.end();
      }));
  return found;
}

PictureClasses folder_classes(const fs::path& folder) {
  FolderListing listing(folder);
  return classes_in(listing, folder);
}

PictureIndex index_folder(const fs::path& folder, const FolderOptions& options,
                          const std::optional<PictureClasses>& classes) {
  PictureIndex index = list_and_index(folder, options, classes);
  if (!options.listing.empty()) index.limit_memory(options.listing.parent_path());
  return_freed_memory();  // of the listing
  return index;
}

}  // namespace lockstep::inline internal
