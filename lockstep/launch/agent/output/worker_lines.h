#pragma once
// All workers' lines on their way to the console: they are copied, limited, folded and labelled.

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/agent/output/line_folder.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/console.h"
#include "lockstep/launch/process/line_prefix.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

/// The treatment of one line of a rank.
struct LineChoice {
  bool show = true;
  long dropped = 0;  ///< Lines dropped since the last shown one; to be reported before this one.
};

/// Limits the lines of one rank on the console: `lines_a_second` on average, as many at once. So a
/// rank that prints without end does not hide the others' output. Pure: time is an argument.
class LineRate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// lines_a_second 0: all.
  explicit LineRate(int lines_a_second) : limit_(lines_a_second), left_(lines_a_second) {}

  LineChoice line(Time now);

  /// Lines dropped and not reported yet; then counts them as reported.
  long take_dropped();

 private:
  int limit_;
  double left_;
  long dropped_ = 0;
  Time filled_{};
};

/// Copies lines of all local ranks that contain one of some texts to a separate file (torchrun's
/// --duplicate_stdout_filters).
class LineCopies {
 public:
  /// Makes `path`, or empties it. Copies nothing without filters or without a path. Errors: kIo
  /// naming the path.
  LineCopies(std::vector<std::string> filters, std::string path);

  /// Writes prefix, text and a newline at once if the text contains one of the filters. A file that
  /// cannot be written is reported once; then nothing more is copied.
  void line(const std::string& prefix, const std::string& text);

 private:
  std::vector<std::string> filters_;
  std::string path_;
  UniqueFd file_;
};

/// Lines that ranks have begun and not ended yet: prompts, progress bars. Decides when to show each
/// of them. Pure: time is an argument.
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

struct WorkerLinesOptions {
  PrefixStyle out;    ///< Of stdout's lines.
  PrefixStyle err;    ///< Of stderr's.
  int num_ranks = 1;  ///< Of this host.
  bool fold = true;
  bool raw = false;  ///< Bytes are shown as they come; lines are copied only.
  ConsoleKind console;
  int lines_a_second = 0;  ///< Of each rank; 0: all.
  /// A line that contains one of the filters also goes to that file; so for stderr.
  std::vector<std::string> out_filters, err_filters;
  std::string out_copies, err_copies;  ///< Empty: nowhere.
};

class WorkerLines {
 public:
  using Time = LineFolder::Time;

  /// `console` outlives this. Errors: kIo (a file of copies).
  WorkerLines(const WorkerLinesOptions& options, Console* console);

  /// Sets the time of the lines that follow: lines read in one go count as simultaneous, however
  /// long the reading takes.
  void are_of(Time now) { now_ = now; }
  void line(int local_rank, int stream, const std::string& text);
  /// The rank's line so far; empty: none. A bar returns to the line's beginning.
  void unfinished(int local_rank, int stream, std::string text, bool bar);
  /// All bytes that a rank writes, as they were read; line() and unfinished() are called besides.
  void bytes(int stream, std::string_view read);
  /// This rank was the first to fail, with this error on stderr. Equal errors of others are left
  /// out.
  void failed(int local_rank, const std::vector<std::string>& stderr_tail);
  /// Another generation begins.
  void begin_generation() { echo_ = {}; }
  /// reading: whether the ranks' output is being read.
  void pass_time(Time now, bool reading);
  /// Puts everything on the console, also the count of dropped lines not reported yet.
  void flush();
  /// Columns that a rank's line may take of a terminal; 0: `stream` is none.
  int columns(int stream) const;
  /// When to call pass_time().
  std::optional<Time> due() const;

 private:
  void copy(int local_rank, int stream, const std::string& text);
  void show(const std::vector<FoldedLine>& lines);
  std::string prefix(int stream, const std::vector<int>& local_ranks) const;
  void report_dropped(int local_rank, long count);
  bool finish_open(int local_rank, int stream, const std::string& text);
  void show_unfinished(const UnfinishedLines::Line& line);
  void draw_foot();

  WorkerLinesOptions options_;
  Console* console_;
  LineFolder folder_;
  FailureEcho echo_;
  LineCopies out_copies_, err_copies_;
  UnfinishedLines unfinished_;
  struct Opened {
    int local_rank = -1;
    std::string text;  ///< The part of its line that is shown; the console's line is still open.
  };
  std::array<Opened, 2> opened_;  ///< By stream.
  Time now_ = std::chrono::steady_clock::now();
  std::vector<LineRate> rates_;                       ///< By local rank.
  std::vector<std::string> out_prefix_, err_prefix_;  ///< Of single ranks.
};

/// Whether workers' output is shown unchanged: with --raw, or with one rank in all and no requested
/// prefix.
bool shows_raw(const RunOptions& options, const Environment& environment);

/// Pure. `environment`: NO_COLOR, TERM, TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE. `attempt_folder`:
/// for copies of lines; empty: none are made.
WorkerLinesOptions job_lines(const RunOptions& options, const Environment& environment,
                             const JobAssignment& assignment, const ConsoleKind& console,
                             const std::string& attempt_folder);

}  // namespace lockstep::inline internal
