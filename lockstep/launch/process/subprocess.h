#pragma once
// Another program as a child with pipes, as long as its output is awaited.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// A running child in its own process group, which ends with this object (SIGKILL to the group).
/// One thread at a time.
class Subprocess {
 public:
  /// Starts words[0], found in PATH. Errors: kNotFound (no such program), kIo.
  explicit Subprocess(const std::vector<std::string>& words);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  /// Our ends, non-blocking. Write to in() with send(2) and MSG_NOSIGNAL: it is a socket.
  int in() const { return in_.get(); }
  int out() const { return out_.get(); }
  int err() const { return err_.get(); }
  void close_in() { in_.reset(); }
  void kill_group() const;  ///< SIGKILL.

  /// Its exit status (128 + n for signal n) once it has ended.
  std::optional<int> poll_end();
  /// Waits for its end until the deadline.
  std::optional<int> wait(Deadline deadline);

 private:
  pid_t pid_ = -1;
  UniqueFd in_, out_, err_;
  std::optional<int> status_;
};

struct ProgramOutput {
  int status = 0;  ///< 127: no such program; 124: killed at the deadline.
  std::string out;
  std::string err;
};

/// Runs a program with an empty standard input. Never throws because of the program; keeps at most
/// `max_bytes` of each stream.
ProgramOutput run_program(const std::vector<std::string>& words, Deadline deadline,
                          size_t max_bytes = size_t{1} << 20);

/// Appends all readable bytes to `text`; false at the end (or after an error).
bool read_available(int fd, std::string* text, size_t max_bytes);

}  // namespace lockstep::inline internal
