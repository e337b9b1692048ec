#include "lockstep/launch/agent/console.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

constexpr size_t kFullBytes = 1 << 20;

/// True when PIPE_BUF bytes can be written without waiting.
bool writable(int fd, bool wait) {
  pollfd item{fd, POLLOUT, 0};
  while (true) {
    const int ready = ::poll(&item, 1, wait ? -1 : 0);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return true;  // let write() say what is wrong
  }
}

}  // namespace

void Console::put(int stream, std::string line) {
  Stream& to = streams_[static_cast<size_t>(stream - 1)];
  if (to.broken) return;
  line += '\n';
  to.bytes += line.size();
  to.lines.push_back(std::move(line));
}

void Console::flush(int fd, Stream* stream, bool wait) {
  while (!stream->lines.empty()) {
    if (!writable(fd, wait)) return;
    std::string chunk = stream->lines.front().substr(stream->written, PIPE_BUF);
    const bool whole = stream->written + chunk.size() == stream->lines.front().size();
    for (size_t i = 1; whole && i < stream->lines.size(); ++i) {
      if (chunk.size() + stream->lines[i].size() > PIPE_BUF) break;
      chunk += stream->lines[i];
    }
    ssize_t put = ::write(fd, chunk.data(), chunk.size());
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (put < 0) {
      const bool reader_gone = errno == EPIPE;
      *stream = Stream{};
      stream->broken = reader_gone;
      return;
    }
    stream->bytes -= static_cast<size_t>(put);
    stream->written += static_cast<size_t>(put);
    while (!stream->lines.empty() && stream->written >= stream->lines.front().size()) {
      stream->written -= stream->lines.front().size();
      stream->lines.pop_front();
    }
  }
}

void Console::flush() {
  flush(STDOUT_FILENO, &streams_[0], false);
  flush(STDERR_FILENO, &streams_[1], false);
}

void Console::drain() {
  flush(STDOUT_FILENO, &streams_[0], true);
  flush(STDERR_FILENO, &streams_[1], true);
}

int Console::waiting_stream() const {
  if (!streams_[0].lines.empty()) return STDOUT_FILENO;
  return streams_[1].lines.empty() ? -1 : STDERR_FILENO;
}

bool Console::full() const {
  return streams_[0].bytes + streams_[1].bytes > kFullBytes;
}

}  // namespace lockstep
