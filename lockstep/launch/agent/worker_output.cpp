#include "lockstep/launch/agent/worker_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kReadBytes = 64 << 10;
/// A pipe holds 64 KiB, or at most 1 MiB without privileges.
constexpr int kReadsAPipeHolds = (1 << 20) / kReadBytes + 1;

}  // namespace

void Tail::add(const std::string& line) {
  lines_.push_back(line.substr(0, kMaxLineBytes));
  if (lines_.size() > kMaxLines) lines_.pop_front();
}

std::vector<std::string> tail_of_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return {};
  constexpr off_t kBytes = 64 << 10;
  const off_t start = status.st_size > kBytes ? status.st_size - kBytes : 0;
  std::string bytes(static_cast<size_t>(status.st_size - start), '\0');
  const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), start);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  LineSplitter splitter;
  Tail tail;
  for (const std::string& line : splitter.feed(bytes)) tail.add(line);
  const std::string last = splitter.finish();
  if (!last.empty()) tail.add(last);
  return tail.lines();
}

WorkerOutput::WorkerOutput(const OutputRoute& route) : route_(route) {
  if (!route.file.empty()) {
    file_.reset(::open(route.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file_) throw io_error("open " + route.file);
  }
  if (!route.piped) {
    worker_end_ = std::move(file_);
    return;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw io_error("pipe");
  pipe_.reset(ends[0]);
  worker_end_.reset(ends[1]);
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);  // only this end
}

bool WorkerOutput::read_some(WorkerLines* lines) {
  static std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {
    close(lines);
    return false;
  }
  const std::string_view read(buffer.data(), static_cast<size_t>(got));
  write_file(read.data(), read.size());
  if (route_.console) lines->bytes(route_.stream, read);
  for (const auto& line : splitter_.feed(read)) pass_on(line, lines);
  if (route_.console) {
    lines->unfinished(route_.local_rank, route_.stream, splitter_.unfinished(), splitter_.is_bar());
  }
  return true;
}

void WorkerOutput::drain(WorkerLines* lines) {
  // Read no more than a pipe holds: a process that outlives the worker may write for ever.
  for (int i = 0; i < kReadsAPipeHolds && pipe_ && read_some(lines); ++i) {
  }
  finish(lines);
}

/// Passes on a last line that has no newline.
void WorkerOutput::finish(WorkerLines* lines) {
  const std::string last = splitter_.finish();
  if (last.empty()) return;
  pass_on(last, lines);
  if (route_.console) lines->unfinished(route_.local_rank, route_.stream, "", false);
}

void WorkerOutput::close(WorkerLines* lines) {
  finish(lines);
  pipe_.reset();
  file_.reset();
}

std::vector<std::string> WorkerOutput::tail() const {
  return route_.piped ? tail_.lines() : tail_of_file(route_.file);
}

void WorkerOutput::pass_on(const std::string& line, WorkerLines* lines) {
  if (route_.keep_tail) tail_.add(line);
  if (!route_.console) return;
  lines->line(route_.local_rank, route_.stream, line);
}

void WorkerOutput::write_file(const char* data, size_t size) {
  if (!file_) return;
  try {
    write_all(file_.get(), data, size, route_.file);
  } catch (const Error& error) {
    log_warn(std::string(error.what()) + "; its rest goes to the console only");
    file_.reset();
  }
}

}  // namespace lockstep::inline internal
