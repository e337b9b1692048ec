#pragma once
// The agent's own standard output and error, written without ever holding up the agent.

#include <array>
#include <deque>
#include <string>

namespace lockstep {

/// Queues whole lines for stdout (1) and stderr (2) and writes them when the other end reads.
/// Lines are put together into writes of at most PIPE_BUF bytes, which no other writer can come
/// between; only a longer line takes several.
class Console {
 public:
  void put(int stream, std::string line);

  /// Writes what can be written now.
  void flush();

  /// Writes everything, waiting as long as it takes.
  void drain();

  /// Of a stream with queued lines, for poll; -1: none.
  int waiting_stream() const;

  /// More is queued than should be: stop reading from workers until it is not.
  bool full() const;

  /// The reader of a stream is gone; what is put there is dropped.
  bool broken() const { return streams_[0].broken || streams_[1].broken; }

 private:
  struct Stream {
    std::deque<std::string> lines;
    size_t written = 0;  ///< Of the first line.
    size_t bytes = 0;    ///< Of all lines.
    bool broken = false;
  };
  void flush(int fd, Stream* stream, bool wait);

  std::array<Stream, 2> streams_;
};

}  // namespace lockstep
