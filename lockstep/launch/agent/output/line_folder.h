#pragma once
// One line where many ranks print the same ("[0-31] epoch 1"), and one error that all agree on.

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// What is shown: `text` of all of `ranks` (ascending, at least one).
struct FoldedLine {
  int stream = 1;
  std::vector<int> ranks;
  std::string text;
};

/// Holds back each line for a moment, to see who else prints it. Pure: time is an argument.
///
/// A rank's lines come out in the order in which it printed them, both streams together. A line
/// comes out when all ranks have printed it and at the latest `window` after the first did; those
/// of fewer than `kFewest` ranks come out one by one. Of two ranks only lines on standard error are
/// held back, and one that both printed is one line: mostly it is what ended both. Of one rank
/// nothing is held back. Cost: a line is compared with those that are held back, at most kMaxHeld.
class LineFolder {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kWindow{25};
  static constexpr size_t kFewest = 3;
  static constexpr size_t kMaxHeld = 256;

  /// num_ranks: that print. `fold` false: nothing is held back.
  LineFolder(int num_ranks, bool fold, std::chrono::milliseconds window = kWindow);

  /// Rank `rank`, in [0, num_ranks), prints `text`. Returns what is to be shown now.
  std::vector<FoldedLine> add(int rank, int stream, std::string text, Time now);

  /// What has waited long enough by `now`.
  std::vector<FoldedLine> pass_time(Time now);

  /// All that is held back.
  std::vector<FoldedLine> flush();

  /// Whether such a line is held back, so that another rank's may still join it.
  bool holds(int stream, const std::string& text) const;

  /// When pass_time() has something to return; nothing when no line is held back.
  std::optional<Time> due() const;

 private:
  struct Held {
    FoldedLine line;
    Time until;
  };
  size_t after_last_of(int rank) const;
  bool may_fold(int stream) const { return num_ranks_ >= kFewest || stream == 2; }
  void release(std::vector<FoldedLine>* out);
  void release_whole(std::vector<FoldedLine>* out);

  const size_t num_ranks_;
  const bool fold_;
  const std::chrono::milliseconds window_;
  std::deque<Held> held_;  ///< In the order in which they were first printed.
};

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
