#pragma once
// An error that all ranks agree on is one error.

#include <string>
#include <vector>

namespace lockstep {

/// Knows the last words of the rank that failed first. Pure.
class FailureEcho {
 public:
  FailureEcho() = default;
  /// stderr_tail: its last lines.
  FailureEcho(int local_rank, const std::vector<std::string>& stderr_tail);

  /// Whether another rank says nothing new: its line is an error that stands for itself ("NAME:
  /// error: ..."), and the failed rank ended with the same one. A line of a longer text is not left
  /// out: the rest would make no sense without it.
  bool repeats(int local_rank, int stream, const std::string& text) const;

 private:
  int local_rank_ = -1;
  std::string last_line_;
};

}  // namespace lockstep
