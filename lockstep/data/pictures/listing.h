#pragma once
// What lies in the folders of a data set, kept in a file from run to run: of a folder that has not
// changed only its time is looked at.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/mutex.h"

namespace lockstep::inline internal {

/// Whether a file's name ends as those of JPEG (.jpg, .jpeg), PNG, BMP or WebP do, in any case.
/// Names that begin with a dot do not count.
bool is_picture_name(std::string_view name);

/// Whether a change of a file or folder, at this time in nanoseconds, is ten seconds old. One that
/// is younger is not kept, since further changes may have the same time.
bool has_settled(int64_t changed_ns);

/// The visible entries of a folder, without other files; links count as their targets.
struct FolderEntries {
  std::vector<std::string> folders;
  std::vector<std::string> pictures;
};

/// Any number of threads may read.
///
/// A folder's time of change (mtime) tells whether names came or went. What has not settled is not
/// kept.
///
/// The file: parts that end with a zero byte. First kListingMark and the absolute path of the data
/// set; for each folder its path below that, its time in nanoseconds, the numbers of folders and
/// pictures, and their names; kListingEnd.
class FolderListing {
 public:
  /// `file`: empty, or where listings are kept. One that is missing, damaged or of another folder
  /// counts as empty.
  explicit FolderListing(std::filesystem::path folder, std::filesystem::path file = {});

  /// The entries of the folder `below` the data set's. Errors: kIo.
  FolderEntries read(const std::string& below);

  /// Folders that were read from the disk, rather than known.
  int64_t num_read() const { return num_read_; }

  /// Writes the file if that will save reading `least` pictures or more. A file that cannot be
  /// written is no error: the next run reads the folders.
  void keep(int64_t least);

 private:
  struct Known {
    int64_t changed_ns = 0;
    FolderEntries entries;
  };
  using Folders = std::map<std::string, Known>;
  static Folders parse(const std::string& bytes, const std::string& mark);

  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::string mark_;  // the folder's absolute path
  Folders before_;
  std::atomic<int64_t> num_read_ = 0;
  Mutex mutex_;
  Folders now_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::inline internal
