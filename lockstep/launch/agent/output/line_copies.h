#pragma once
// Lines of all local ranks that have one of some texts in them, in a file of their own
// (torchrun's --duplicate_stdout_filters).

#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

class LineCopies {
 public:
  /// Makes `path`, or empties it. Without filters, or without a path, nothing is copied.
  /// Errors: kIo naming the path.
  LineCopies(std::vector<std::string> filters, std::string path);

  /// Writes prefix, text and a newline at once, where the text has one of the filters in it. A file
  /// that cannot be written is said once, and no more is copied.
  void line(const std::string& prefix, const std::string& text);

 private:
  std::vector<std::string> filters_;
  std::string path_;
  UniqueFd file_;
};

}  // namespace lockstep
