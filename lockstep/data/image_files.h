#pragma once
// The files of a data set of small images, and the folder that has them. Private to this folder.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::inline internal {

struct ImageFiles {
  std::vector<std::string> train;
  std::vector<std::string> test;
  /// Sub-folders in which archives have them. A folder itself comes first.
  std::vector<std::string> folders;

  std::vector<std::string> of(Split split) const;
};

/// Errors: kIo.
bool file_is_there(const std::filesystem::path& path);

/// `dir`, or the first of its sub-folders that holds one of the files; empty if none does. Errors:
/// kIo if `dir` exists but cannot be read.
std::filesystem::path find_files(const ImageFiles& files, const std::filesystem::path& dir);

/// Those of `split` in `folder`, in their order.
std::vector<std::filesystem::path> present_files(const ImageFiles& files,
                                                 const std::filesystem::path& folder, Split split);

/// The same in `dir` or its sub-folders. Errors: kNotFound (no such folder, with `help`; none of
/// the files).
std::vector<std::filesystem::path> require_files(const ImageFiles& files,
                                                 const std::filesystem::path& dir, Split split,
                                                 const std::string& help);

/// "DIR lacks A, B: only the other 3 of 5 files are used"; empty if none or all are missing.
std::string missing_files_warning(const ImageFiles& files, const std::filesystem::path& dir,
                                  Split split);

/// The number of records of `record_bytes` in a file of `bytes`. `what`: "CIFAR-10 in binary form".
/// Errors: kCorrupt if it is empty, or ends within a record.
size_t whole_records(size_t bytes, size_t record_bytes, const std::string& file,
                     const std::string& what);

/// The sum over those of `split`; 0 without files.
int64_t count_records(const ImageFiles& files, const std::filesystem::path& dir, Split split,
                      size_t record_bytes, const std::string& what);

/// The lines of a file of names, such as batches.meta.txt; empty if it or `folder` is missing.
std::vector<std::string> read_names(const std::filesystem::path& folder, const char* file);

}  // namespace lockstep::inline internal
