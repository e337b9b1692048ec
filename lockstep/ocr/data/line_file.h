#pragma once
// Text files of millions of lines: only the positions of lines are kept, and a line is read when
// needed.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep::ocr {

/// A line's position in its file, without its end.
struct FileLine {
  uint64_t offset = 0;  ///< Bytes from the file's beginning.
  uint32_t size = 0;    ///< Bytes.
  uint32_t number = 0;  ///< 1 for the first line of the file.
};

/// Calls `found` with each line that is more than white space. A byte order mark is skipped; a
/// carriage return is part of its line. Memory: the longest line.
void for_each_line(std::istream& file,
                   const std::function<void(const std::string& line, FileLine)>& found);

/// An open file. Any number of threads may read lines.
class LineFile {
 public:
  /// Errors: kNotFound, kIo.
  explicit LineFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }

  /// Every line that is more than white space, in the file's order. Errors: kIo, kCorrupt (a line
  /// or a number of lines of 4 Gi).
  void scan(const std::function<void(const std::string& line, FileLine)>& found) const;

  /// Cost: one pread(2). Errors: kIo, kCorrupt (the file has become shorter).
  std::string read(FileLine place) const;

 private:
  std::string name_;
  UniqueFd fd_;
};

}  // namespace lockstep::ocr
