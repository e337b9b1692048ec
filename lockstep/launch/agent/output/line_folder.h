#pragma once
// Folds equal lines of many ranks into one ("[0-31] epoch 1"), and an error that several ranks
// print.

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// A line to show: `text` of all of `ranks` (ascending, at least one).
struct FoldedLine {
  int stream = 1;
  std::vector<int> ranks;
  std::string text;
};

/// Holds back each line for a moment, until others may have printed it too. Pure: time is an
/// argument.
///
/// A rank's lines come out in the order in which it printed them, both streams together. A line
/// comes out when all ranks have printed it, at the latest `window` after the first did. Lines of
/// fewer than `kFewest` ranks come out one by one.
///
/// Of two ranks only lines on standard error are held back. A line that both printed is one
/// line: mostly it is the error that ended both. Of one rank nothing is held back. Cost: a line is
/// compared with the held lines, at most kMaxHeld.
class LineFolder {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kWindow{25};
  static constexpr size_t kFewest = 3;
  static constexpr size_t kMaxHeld = 256;

  /// num_ranks: ranks that print. `fold` false: nothing is held back.
  LineFolder(int num_ranks, bool fold, std::chrono::milliseconds window = kWindow);

  /// Rank `rank`, in [0, num_ranks), prints `text`. Returns the lines to show now.
  std::vector<FoldedLine> add(int rank, int stream, std::string text, Time now);

  /// Lines that have waited long enough by `now`.
  std::vector<FoldedLine> pass_time(Time now);

  /// All held lines.
  std::vector<FoldedLine> flush();

  /// Whether such a line is held, so that another rank's may still join it.
  bool holds(int stream, const std::string& text) const;

  /// When pass_time() has something to return; nothing if no line is held.
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
  std::deque<Held> held_;  ///< In the order in which the lines were first printed.
};

/// The last error of the rank that failed first, to leave out repetitions. Pure.
class FailureEcho {
 public:
  FailureEcho() = default;
  /// stderr_tail: that rank's last lines on stderr.
  FailureEcho(int local_rank, const std::vector<std::string>& stderr_tail);

  /// Whether another rank's line repeats the failed rank's last one: a complete error ("NAME:
  /// error: ..."). A line within a longer text is kept, because the rest would make no sense
  /// without it.
  bool repeats(int local_rank, int stream, const std::string& text) const;

 private:
  int local_rank_ = -1;
  std::string last_line_;
};

}  // namespace lockstep::inline internal
