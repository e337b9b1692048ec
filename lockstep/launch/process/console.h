#pragma once
// The agent's own standard output and error, written without ever holding up the agent.

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/process/line_splitter.h"
#include "lockstep/launch/process/terminal_pump.h"

namespace lockstep {

/// What the agent's own streams are.
struct ConsoleKind {
  bool out_terminal = false;
  bool err_terminal = false;
  bool joint =
      false;  ///< Both go to the same place: what is open on one is in the way of the other.
  bool terminal(int stream) const { return stream == 1 ? out_terminal : err_terminal; }
};
ConsoleKind console_kind();

/// Columns of the terminal that `stream` is; 0 where it is none or does not tell.
int terminal_columns(int stream);

/// Queues whole lines for stdout (1) and stderr (2) and writes them when the other end reads.
/// Lines are put together into writes of at most PIPE_BUF bytes, which no other writer can come
/// between; only a longer line takes several. May be used by several threads; none ever waits for
/// whoever reads, but in drain().
class Console {
 public:
  explicit Console(const ConsoleKind& kind = {});

  void put(int stream, std::string line);

  /// A line of the agent's own for stderr, with its end, written at once where that can be done.
  /// Where more is queued than should be it is dropped; how many were is said later, once.
  void put_log(std::string line);

  /// Bytes as they are. A line that is put while their last line has no end begins a new one.
  void append(int stream, std::string_view bytes);
  /// What was appended last has no end of line yet, and nothing came after it.
  bool open(int stream) const;
  /// The rest of what is open; with the end of line.
  void put_rest(int stream, std::string rest);

  /// Whether the reader of `stream` has just been shown these lines, in this order.
  bool has_shown(int stream, const std::vector<std::string>& lines) const;

  /// What stands below all lines on a terminal, drawn again after each; "": nothing. Has no effect
  /// on a stream that is no terminal.
  void set_foot(int stream, std::string text);

  /// Writes what can be written now.
  void flush();

  /// Writes everything, waiting as long as it takes; other threads may go on logging. What is
  /// written to a terminal afterwards waits for whoever reads it. `until`: what nobody has read by
  /// then is dropped, and what is put on that stream afterwards too. Returns how many bytes were.
  size_t drain(const std::optional<Deadline>& until = {});

  /// Of a stream with queued lines, for poll; -1: none.
  int waiting_stream() const;

  /// More is queued than should be: stop reading from workers until it is not.
  bool full() const;

  /// The reader of a stream is gone; what is put there is dropped.
  bool broken() const;

  /// Why lines are lost: "write standard output: No space left on device", the first that failed.
  /// Empty: none are, or their reader is gone.
  std::string failure() const;

 private:
  struct Stream {
    int fd = -1;
    UniqueFd own;  ///< The same pipe, opened anew so that writing never waits.
    std::shared_ptr<TerminalPump> pump;  ///< Of a terminal, until drain().
    std::deque<std::string> lines;
    size_t written = 0;  ///< Of the first line.
    size_t bytes = 0;    ///< Of all lines.
    bool broken = false;
    bool open = false;
    RecentText recent;

    int target() const { return own ? own.get() : pump ? pump->fd() : fd; }
  };
  bool one_terminal() const { return kind_.joint && kind_.out_terminal && kind_.err_terminal; }
  static size_t index(int stream) { return static_cast<size_t>(stream - 1); }
  std::string end_of_open(int stream) LOCKSTEP_REQUIRES(mutex_);
  void push(int stream, std::string text) LOCKSTEP_REQUIRES(mutex_);
  void push_line(int stream, std::string line) LOCKSTEP_REQUIRES(mutex_);
  std::string foot_away(int stream) LOCKSTEP_REQUIRES(mutex_);
  void draw_foot() LOCKSTEP_REQUIRES(mutex_);
  void flush(Stream* stream) LOCKSTEP_REQUIRES(mutex_);
  void flush_all() LOCKSTEP_REQUIRES(mutex_);
  int waiting() const LOCKSTEP_REQUIRES(mutex_);
  size_t drop_queued() LOCKSTEP_REQUIRES(mutex_);
  bool is_full() const LOCKSTEP_REQUIRES(mutex_);

  const ConsoleKind kind_;
  mutable Mutex mutex_;
  std::array<Stream, 2> streams_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string failure_ LOCKSTEP_GUARDED_BY(mutex_);
  long dropped_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< Lines of the agent's own.
  std::string foot_ LOCKSTEP_GUARDED_BY(mutex_);
  int foot_stream_ LOCKSTEP_GUARDED_BY(mutex_) = 2;
  bool foot_drawn_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

/// While it lives, what any thread of this process logs goes through `console`.
class ConsoleLog {
 public:
  explicit ConsoleLog(Console* console);
  ~ConsoleLog();
  ConsoleLog(const ConsoleLog&) = delete;
  ConsoleLog& operator=(const ConsoleLog&) = delete;

 private:
  Console* const console_;
};

}  // namespace lockstep
