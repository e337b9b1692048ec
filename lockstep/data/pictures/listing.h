#pragma once
// Lists the folders of a data set, and keeps the lists in a file from run to run. Of a folder that
// has not changed only its time is read.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/data/pictures/name_text.h"

namespace lockstep::inline internal {

/// Whether a file's name ends as those of JPEG (.jpg, .jpeg), PNG, BMP or WebP do, in any case.
/// Names that begin with a dot do not count.
bool is_picture_name(std::string_view name);

/// Of hidden entries, and of the folder that archives of macOS have beside their contents.
bool is_ignored_name(std::string_view name);

/// Whether a change of a file or folder, at this time in nanoseconds, is ten seconds old. One that
/// is younger is read again by the next run, since further changes may have the same time.
bool has_settled(int64_t changed_ns);

/// A folder's pictures in a text: `count` names, sorted by their bytes, each with a zero byte.
struct FolderNames {
  uint64_t folder = 0;  ///< Of the folder's own path below the data set's.
  uint64_t begin = 0;
  uint64_t bytes = 0;
  int64_t count = 0;
};

/// Any number of threads may read(). Then one takes the names().
///
/// A folder's time of change (mtime) shows whether names came or went. One that has not settled is
/// read again by the next run.
///
/// The file: parts that end with a zero byte. First kListingMark and the absolute path of the data
/// set; for each folder its path below that, its time in nanoseconds (kUnsettled: none), the
/// numbers of folders and pictures, and their names, sorted; kListingEnd. It is never written in
/// place, only replaced: runs that read it keep what they have.
class FolderListing {
 public:
  /// `file`: empty, or where listings are kept. One that is missing, damaged or of another folder
  /// counts as empty.
  explicit FolderListing(std::filesystem::path folder, std::filesystem::path file = {});

  /// The sub-folders of the folder `below` the data set's, sorted. Links count as their targets,
  /// is_ignored_name() ones do not count. Errors: kIo.
  std::vector<std::string> read(const std::string& below);

  /// Folders that were read from the disk, rather than known.
  int64_t num_read() const { return num_read_; }

  /// The names of all folders that were read, for of(). They are in the file if there are `least`
  /// pictures or more, else in memory. The file is written if any folder was read from the disk. A
  /// file that cannot be written is no error: the next run reads the folders.
  std::shared_ptr<const NameText> names(int64_t least);

  /// The pictures of a folder that was read, in the text of the last call of names().
  FolderNames of(const std::string& below);

 private:
  struct Known {
    int64_t changed_ns = 0;
    std::vector<std::string> folders;
    FolderNames names;
    std::string text;  ///< The names, if they were read from the disk: they are in no text yet.
  };
  using Folders = std::map<std::string, Known>;
  using Places = std::vector<FolderNames>;  // of the folders, in their order

  static Folders parse(const NameText& text, const std::string& mark);
  static Known read_entries(const std::filesystem::path& folder);

  /// Puts the whole listing, and returns the places of the names in it.
  Places put_all(const Folders& folders,
                 const std::function<void(std::string_view bytes)>& put) const;
  /// Null if there is no file to be written.
  std::shared_ptr<const NameText> put_into_file(const Folders& folders, Places& places) const;
  std::shared_ptr<const NameText> put_into_memory(const Folders& folders, Places& places) const;

  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::string mark_;  // the folder's absolute path
  std::shared_ptr<const NameText> text_;
  Folders before_;
  std::atomic<int64_t> num_read_ = 0;
  Mutex mutex_;
  Folders now_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::inline internal
