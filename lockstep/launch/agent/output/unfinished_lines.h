#pragma once
// What ranks have written of lines that have no end yet: prompts, progress bars.

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Says when which of them is to be shown. Pure: time is an argument.
///
/// A text is shown once it has stood for kDelay, so that a line that is written in pieces comes out
/// whole. A bar, which comes back to the line's beginning (\r), is shown again in its last state,
/// at most so often.
class UnfinishedLines {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kDelay{200};

  /// Between two states of a bar, by stream.
  explicit UnfinishedLines(std::array<std::chrono::milliseconds, 2> bar_intervals)
      : bar_intervals_(bar_intervals) {}

  struct Line {
    int rank = 0;
    int stream = 1;
    std::string text;
    bool bar = false;
  };

  /// The line of `rank` on `stream` is `text` by now; empty: it has ended, or not begun.
  void set(int rank, int stream, std::string text, bool bar, Time now);

  /// Nobody reads what the ranks write on: the rest of a line may wait in its pipe, so that none
  /// has stood yet. For as long as that is so.
  void hold(Time now);

  /// Those that are due by `now`; each as long as it does not change once.
  std::vector<Line> pass_time(Time now);
  std::optional<Time> due() const;

  /// Of those that have been shown that of the lowest rank: for the one place at a terminal's foot.
  std::optional<Line> first_shown() const;

 private:
  struct State {
    Line line;
    bool fresh = false;  ///< Not shown as it is.
    bool shown = false;  ///< Some state of it was.
    Time due;
    Time shown_at;
  };
  const std::array<std::chrono::milliseconds, 2> bar_intervals_;
  std::map<std::pair<int, int>, State> lines_;  ///< By rank and stream.
};

}  // namespace lockstep
