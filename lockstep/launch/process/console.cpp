#include "lockstep/launch/process/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/base/counted.h"
#include "lockstep/base/log_sink.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kFullBytes = 1 << 20;
constexpr char kLineAway[] = "\r\x1b[K";

/// True when PIPE_BUF bytes can be written without waiting.
bool writable(int fd, int wait_ms) {
  pollfd item{fd, POLLOUT, 0};
  while (true) {
    const int ready = ::poll(&item, 1, wait_ms);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return true;  // write() will report the error
  }
}

/// Opens a pipe anew so that writes never block: it may be filled between poll() and write(). Empty
/// for other files, and if that is not permitted.
UniqueFd open_without_waiting(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

ConsoleKind console_kind() {
  struct stat out {};
  struct stat err {};
  const bool known = ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0;
  return {::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1,
          known && out.st_dev == err.st_dev && out.st_ino == err.st_ino};
}

int terminal_columns(int stream) {
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Console::Console(const ConsoleKind& kind) : kind_(kind) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    Stream& stream = streams_[index(fd)];
    stream.fd = fd;
    stream.own = open_without_waiting(fd);
    if (!kind_.terminal(fd)) continue;
    // One pump if both streams are the same terminal, so that its output keeps its order.
    const auto& other = streams_[0].pump;
    stream.pump = other && kind_.joint ? other : std::make_shared<TerminalPump>(fd);
  }
}

/// The end of the open text that stands where `stream` is about to write.
std::string Console::end_of_open(int stream) {
  std::string end;
  for (const int each : {1, 2}) {
    Stream& other = streams_[index(each)];
    if (!other.open || (each != stream && !kind_.joint)) continue;
    other.open = false;
    end = "\n";
  }
  return end;
}

/// Removes the foot if it is on the terminal that `stream` writes to.
std::string Console::foot_away(int stream) {
  if (!foot_drawn_ || !kind_.terminal(stream)) return "";
  foot_drawn_ = false;
  return kLineAway;
}

void Console::push(int stream, std::string text) {
  // One queue for both on one terminal: a foot must be removed before anything is written there.
  Stream& to = one_terminal() ? streams_[0] : streams_[index(stream)];
  if (to.broken || text.empty()) return;
  to.bytes += text.size();
  streams_[index(stream)].recent.add(text);
  to.lines.push_back(std::move(text));
}

void Console::push_line(int stream, std::string line) {
  push(stream, foot_away(stream) + end_of_open(stream) + std::move(line));
}

void Console::put(int stream, std::string line) {
  const MutexLock lock(mutex_);
  push_line(stream, std::move(line) + '\n');
}

void Console::put_log(std::string line) {
  const MutexLock lock(mutex_);
  if (is_full()) flush_all();
  if (is_full()) {
    ++dropped_;
    return;
  }
  if (const long count = std::exchange(dropped_, 0); count > 0) {
    push_line(2, fmt::format("lockstep: warn: {} of the agent's own {} dropped: nobody read "
                             "its output\n",
                             counted(count, "line"), count == 1 ? "was" : "were"));
  }
  push_line(2, std::move(line));
  flush_all();
}

bool Console::has_shown(int stream, const std::vector<std::string>& lines) const {
  const MutexLock lock(mutex_);
  return streams_[index(stream)].recent.has(lines);
}

bool Console::open(int stream) const {
  const MutexLock lock(mutex_);
  return streams_[index(stream)].open;
}

void Console::append(int stream, std::string_view bytes) {
  if (bytes.empty()) return;
  const MutexLock lock(mutex_);
  Stream& to = streams_[index(stream)];
  std::string text = foot_away(stream);
  if (!to.open) text += end_of_open(stream);
  push(stream, text.append(bytes));
  to.open = bytes.back() != '\n';
}

void Console::put_rest(int stream, std::string rest) {
  const MutexLock lock(mutex_);
  streams_[index(stream)].open = false;
  push(stream, foot_away(stream) + std::move(rest) + '\n');
}

void Console::set_foot(int stream, std::string text) {
  const MutexLock lock(mutex_);
  if (!kind_.terminal(stream) || text == foot_) return;
  if (text.empty()) push(foot_stream_, foot_away(foot_stream_));
  foot_ = std::move(text);
  foot_stream_ = stream;
  foot_drawn_ = false;
}

/// Only once the queue is empty: a terminal that is not read gets no foot.
void Console::draw_foot() {
  if (foot_.empty() || foot_drawn_ || waiting() >= 0) return;
  push(foot_stream_, end_of_open(foot_stream_) + kLineAway + foot_);
  foot_drawn_ = true;
}

void Console::flush(Stream* stream) {
  const int fd = stream->target();
  while (!stream->lines.empty()) {
    if (!writable(fd, 0)) return;
    std::string chunk = stream->lines.front().substr(stream->written, PIPE_BUF);
    const bool whole = stream->written + chunk.size() == stream->lines.front().size();
    for (size_t i = 1; whole && i < stream->lines.size(); ++i) {
      if (chunk.size() + stream->lines[i].size() > PIPE_BUF) break;
      chunk += stream->lines[i];
    }
    const ssize_t put = ::write(fd, chunk.data(), chunk.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) {
      if (stream->pump && stream->pump->error() != 0) errno = stream->pump->error();
      stream->broken = errno == EPIPE;
      if (!stream->broken && failure_.empty()) {
        failure_ =
            fmt::format("write standard {}: {}", stream == streams_.data() ? "output" : "error",
                        std::strerror(errno));
      }
      stream->lines.clear();
      stream->written = stream->bytes = 0;
      stream->open = false;
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

void Console::flush_all() {
  for (Stream& stream : streams_) flush(&stream);
  draw_foot();
  for (Stream& stream : streams_) flush(&stream);
}

void Console::flush() {
  const MutexLock lock(mutex_);
  flush_all();
}

size_t Console::drop_queued() {
  size_t dropped = 0;
  for (Stream& stream : streams_) {
    if (stream.lines.empty()) continue;
    dropped += stream.bytes;
    stream.broken = true;
    stream.lines.clear();
    stream.written = stream.bytes = 0;
    stream.open = false;
  }
  return dropped;
}

size_t Console::drain(const std::optional<Deadline>& until) {
  // Waits without the lock: threads that log must not wait.
  while (true) {
    flush();
    const int fd = waiting_stream();
    if (fd < 0 || (until && until->passed())) break;
    writable(fd, until ? until->left_poll_ms() : -1);
  }
  std::array<std::shared_ptr<TerminalPump>, 2> pumps;
  size_t dropped = 0;
  {
    const MutexLock lock(mutex_);
    dropped = drop_queued();
    for (size_t i = 0; i < pumps.size(); ++i) pumps[i] = std::move(streams_[i].pump);
  }
  for (size_t i = 0; until && i < pumps.size(); ++i) {
    if (!pumps[i] || pumps[i]->finish(*until)) continue;
    if (i == 0 || pumps[i] != pumps[0]) dropped += pumps[i]->unread();
    const MutexLock lock(mutex_);
    streams_[i].broken = true;  // a write would wait for the reader
  }
  return dropped;
}

int Console::waiting() const {
  for (const Stream& stream : streams_) {
    if (!stream.lines.empty()) return stream.target();
  }
  return -1;
}

int Console::waiting_stream() const {
  const MutexLock lock(mutex_);
  return waiting();
}

bool Console::is_full() const {
  return streams_[0].bytes + streams_[1].bytes > kFullBytes;
}

bool Console::full() const {
  const MutexLock lock(mutex_);
  return is_full();
}

bool Console::broken() const {
  const MutexLock lock(mutex_);
  return streams_[0].broken || streams_[1].broken;
}

std::string Console::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

ConsoleLog::ConsoleLog(Console* console) : console_(console) {
  set_log_sink([console](const std::string& line) { console->put_log(line); });
}

ConsoleLog::~ConsoleLog() {
  set_log_sink(nullptr);
  console_->flush();
}

}  // namespace lockstep::inline internal
