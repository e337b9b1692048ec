#pragma once
// Lines that ranks have begun and not ended yet: prompts, progress bars.

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Decides when to show each of them. Pure: time is an argument.
///
/// A text is shown once it has stood for kDelay, so that a line written in pieces comes out whole.
/// A bar, which returns to the line's beginning (\r), is shown again in its last state, at limited
/// intervals.
class UnfinishedLines {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kDelay{200};

  /// bar_intervals: least time between two states of a bar, by stream.
  explicit UnfinishedLines(std::array<std::chrono::milliseconds, 2> bar_intervals)
      : bar_intervals_(bar_intervals) {}

  struct Line {
    int rank = 0;
    int stream = 1;
    std::string text;
    bool bar = false;
  };

  /// The line of `rank` on `stream` is `text` now; empty: it has ended, or not begun.
  void set(int rank, int stream, std::string text, bool bar, Time now);

  /// The ranks' output is not read for now: the rest of a line may wait in its pipe. No line counts
  /// as standing meanwhile; to be called as long as that lasts.
  void hold(Time now);

  /// Lines that are due by `now`; each once until it changes.
  std::vector<Line> pass_time(Time now);
  std::optional<Time> due() const;

  /// Of the lines that have been shown, the lowest rank's: for the one place at a terminal's foot.
  std::optional<Line> first_shown() const;

 private:
  struct State {
    Line line;
    bool fresh = false;  ///< This state has not been shown.
    bool shown = false;  ///< Some state of it has been shown.
    Time due;
    Time shown_at;
  };
  const std::array<std::chrono::milliseconds, 2> bar_intervals_;
  std::map<std::pair<int, int>, State> lines_;  ///< By rank and stream.
};

}  // namespace lockstep
