#pragma once
// The agent's own standard output and error, written without ever blocking the agent.

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

namespace lockstep::inline internal {

/// Kind of the agent's own streams.
struct ConsoleKind {
  bool out_terminal = false;
  bool err_terminal = false;
  bool joint = false;  ///< Both go to the same place: open text on one is in the way of the other.
  bool terminal(int stream) const { return stream == 1 ? out_terminal : err_terminal; }
};
ConsoleKind console_kind();

/// Columns of the terminal on `stream`; 0 if it is none, or its size is unknown.
int terminal_columns(int stream);

/// Queues whole lines for stdout (1) and stderr (2) and writes them when the other end reads. Lines
/// are joined into writes of at most PIPE_BUF bytes, which no other writer can interrupt; only a
/// longer line takes several. Thread-safe; only drain() waits for a reader.
class Console {
 public:
  explicit Console(const ConsoleKind& kind = {});

  const ConsoleKind& kind() const { return kind_; }

  void put(int stream, std::string line);

  /// A log line of the agent for stderr, with its newline; written at once if possible. Dropped if
  /// the queue is too long; the number of dropped lines is reported later, once.
  void put_log(std::string line);

  /// Raw bytes. If their last line has no newline, the next line put starts a new one.
  void append(int stream, std::string_view bytes);
  /// The last appended text has no newline yet, and nothing came after it.
  bool open(int stream) const;
  /// The rest of the open line, with its newline.
  void put_rest(int stream, std::string rest);

  /// Whether `stream` has just shown these lines, in this order.
  bool has_shown(int stream, const std::vector<std::string>& lines) const;

  /// Text below all lines on a terminal, drawn again after each; "": nothing. Has no effect on a
  /// stream that is no terminal.
  void set_foot(int stream, std::string text);

  /// Writes as much as possible without waiting.
  void flush();

  /// Writes everything and waits for the reader; other threads may go on logging. Later writes to
  /// a terminal wait for its reader. After `until`, unread output is dropped, and so is later
  /// output to that stream. Returns the number of dropped bytes.
  size_t drain(const std::optional<Deadline>& until = {});

  /// A stream with queued lines, for poll; -1: none.
  int waiting_stream() const;

  /// The queue is too long: stop reading from workers until it is not.
  bool full() const;

  /// The reader of a stream is gone; later output to it is dropped.
  bool broken() const;

  /// Why lines are lost: "write standard output: No space left on device", the first failure.
  /// Empty: none are, or their reader is gone.
  std::string failure() const;

 private:
  struct Stream {
    int fd = -1;
    UniqueFd own;  ///< The same pipe, opened anew so that a write never blocks.
    std::shared_ptr<TerminalPump> pump;  ///< For a terminal, until drain().
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

/// While it lives, log lines of all threads of this process go through `console`.
class ConsoleLog {
 public:
  explicit ConsoleLog(Console* console);
  ~ConsoleLog();
  ConsoleLog(const ConsoleLog&) = delete;
  ConsoleLog& operator=(const ConsoleLog&) = delete;

 private:
  Console* const console_;
};

}  // namespace lockstep::inline internal
