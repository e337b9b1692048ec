#pragma once
// The places and labels of the pictures of a data set, for millions of them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/data/pictures/name_text.h"
#include "lockstep/data/pictures/packed_names.h"
#include "lockstep/data/pictures/shard_samples.h"

namespace lockstep::inline internal {

/// The classes of a data set, in their order.
struct PictureClasses {
  int64_t count = 0;
  std::vector<std::string> names{};  ///< One for each; or none, then they are 0 .. count-1.

  static PictureClasses named(std::vector<std::string> names) {
    const auto count = static_cast<int64_t>(names.size());
    return {count, std::move(names)};
  }
  bool operator==(const PictureClasses&) const = default;
};

/// The number of a class by its name.
class ClassNumbers {
 public:
  explicit ClassNumbers(const PictureClasses& classes);

  /// By name; of classes without names by its number. -1: there is none.
  int64_t of_name(const std::string& name) const;
  /// A whole number in [0, count); else -1.
  int64_t of_number(std::string_view text) const;
  /// "has no class 'cta', did you mean 'cat'?"
  std::string no_class(const std::string& name) const;

 private:
  PictureClasses classes_;
  std::unordered_map<std::string, int64_t> by_name_;
};

/// The part of a shard that is a picture.
struct FilePart {
  uint64_t begin = 0;
  uint32_t bytes = 0;
  ShardState shard;  ///< As it was indexed.
};

/// The most memory that an index of many pictures takes for each, if a file can have the names.
inline constexpr size_t kMostIndexBytes = 24;

/// Pictures 0 .. size()-1, each a file, or part of a shard (an archive). An index has files that
/// are named here (add()), or files that a text in a file names (begin_folder()), or shards.
///
/// Memory: 4 bytes a picture given to add(), and its name as PackedNames has it: 12 altogether for
/// sorted names such as n01440764/n01440764_10026.JPEG. Other pictures take 16 bytes, and folders
/// of a text 24.
/// Read-only once made: any number of threads may read.
class PictureIndex {
 public:
  /// `folder` is in front of relative names.
  PictureIndex(std::filesystem::path folder, PictureClasses classes)
      : folder_(std::move(folder)), classes_(std::move(classes)) {}

  /// Makes room for so many pictures that add_at() adds.
  void reserve(size_t pictures) { entries_.reserve(pictures); }
  /// `label`: in [0, classes().count).
  void add(std::string_view name, int64_t label);
  /// Pictures that are added by add_at() from here on lie in this folder, whose path is the `bytes`
  /// of `names` from `begin` on. All folders have one text, which is in a file.
  void begin_folder(const std::shared_ptr<const NameText>& names, uint64_t begin, size_t bytes);
  /// Pictures that are added by add_at() from here on are of this archive.
  void begin_shard(std::string_view name, const ShardState& state);
  /// `begin`: of the picture in the shard, or of its name in the text.
  void add_at(uint64_t begin, size_t bytes, int64_t label);
  /// Replaces each label given to add() by labels[label], and the classes.
  void classify(PictureClasses classes, const std::vector<int64_t>& labels);
  /// Only the first `size` pictures, at most all.
  void keep(int64_t size);
  /// A line about the data for the log.
  void add_warning(std::string line) { warnings_.push_back(std::move(line)); }
  /// Gives spare memory back; call it after the last add().
  void shrink();
  /// Moves the names of many pictures out of memory where the index takes more than
  /// kMostIndexBytes a picture: into a file without a name in `folder`, else in that for temporary
  /// files. They stay if neither can have one. Call it after the last add().
  void limit_memory(const std::filesystem::path& folder);

  int64_t size() const { return static_cast<int64_t>(entries_.size()) + names_.size(); }
  /// Of the file that has the picture. Errors: DataChanged if a text has lost it.
  std::string name(int64_t index) const;
  std::filesystem::path path(int64_t index) const { return folder_ / name(index); }
  /// Of that file; none: all of it.
  std::optional<FilePart> part(int64_t index) const;
  /// Calls `found` with name(i) of each picture in turn, which is valid during that call. Sooner
  /// than name(), and not for shards. Errors: those of name().
  void for_each_name(const std::function<void(int64_t index, std::string_view name)>& found) const;
  /// The first picture of each archive that has one, ascending.
  std::vector<int64_t> shard_firsts() const;
  /// For messages: its path, or "SHARD: MEMBER".
  std::string where(int64_t index) const;
  int64_t label(int64_t index) const {
    const auto i = static_cast<size_t>(index);
    return entries_.empty() ? labels_[i] : entries_[i].label;
  }
  const PictureClasses& classes() const { return classes_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Of all names and labels in their order, but not of the folder: copies of the data on several
  /// hosts have the same one. Cost: about 2 ms per MB of names and labels.
  uint64_t digest() const;
  /// Of entries, folders and names; of this process alone, so without those of a text in a file.
  size_t memory_bytes() const;

 private:
  struct Entry {
    uint64_t begin = 0;  ///< In the shard, or in text_.
    uint32_t bytes = 0;
    int32_t label = 0;
  };
  struct Folder {
    int64_t first = 0;   ///< Its first picture.
    uint64_t begin = 0;  ///< Of its path in text_; an empty one is part of the names.
    size_t bytes = 0;
  };
  struct Shard {
    int64_t first = 0;  ///< Its first picture.
    std::string name;
    ShardState state;
  };
  std::string path_of(const Folder& folder) const;
  uint64_t digest_of_files() const;

  std::filesystem::path folder_;
  PictureClasses classes_;
  std::vector<Entry> entries_;   // of add_at()
  PackedNames names_;            // of add(); an index has either these or entries_
  std::vector<int32_t> labels_;  // of names_
  std::shared_ptr<const NameText> text_;
  std::vector<Folder> folders_;
  std::vector<Shard> shards_;
  std::vector<std::string> warnings_;
};

}  // namespace lockstep::inline internal
