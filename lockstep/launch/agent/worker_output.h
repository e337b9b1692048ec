#pragma once
// One output stream of one worker: from its pipe to console, file and memory.

#include <deque>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/agent/output/worker_lines.h"
#include "lockstep/launch/process/line_splitter.h"

namespace lockstep::inline internal {

/// The last lines of a stream, for the report of a failure.
class Tail {
 public:
  static constexpr size_t kMaxLines = 20;
  static constexpr size_t kMaxLineBytes = 1000;

  void add(const std::string& line);
  std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  std::deque<std::string> lines_;
};

/// The last lines of a file; none if it cannot be read.
std::vector<std::string> tail_of_file(const std::string& path);

/// Destination of one stream.
struct OutputRoute {
  int stream = 1;  ///< 1 stdout, 2 stderr: of the worker and of the agent.
  int local_rank = 0;
  bool console = true;  ///< False: not shown.
  std::string file;     ///< Empty: none.
  bool piped = true;    ///< False: the worker writes to the file itself.
  bool keep_tail = false;
};

class WorkerOutput {
 public:
  /// Opens pipe and file. Errors: kIo naming the file.
  explicit WorkerOutput(const OutputRoute& route);

  /// The worker's end of the pipe; call close_worker_end() after the worker's start.
  int worker_end() const { return worker_end_.get(); }
  void close_worker_end() { worker_end_.reset(); }

  /// The end to poll; -1 if there is none (any more).
  int fd() const { return pipe_.get(); }

  /// Reads once (up to 64 KiB) and passes it on. False at the end of the stream or if nothing is
  /// there.
  bool read_some(WorkerLines* lines);

  /// Reads all that is there; a last line without a newline counts as whole.
  void drain(WorkerLines* lines);
  void close(WorkerLines* lines);

  std::vector<std::string> tail() const;

 private:
  void finish(WorkerLines* lines);
  void pass_on(const std::string& line, WorkerLines* lines);
  void write_file(const char* data, size_t size);

  OutputRoute route_;
  UniqueFd pipe_;
  UniqueFd worker_end_;
  UniqueFd file_;
  LineSplitter splitter_;
  Tail tail_;
};

}  // namespace lockstep::inline internal
