#include "lockstep/launch/process/terminal_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

TerminalPump::TerminalPump(int terminal) : end_(std::make_shared<End>()) {
  end_->terminal = terminal;
  // Not a pipe: a forked process with a copy of this end must not hide its end from the other side.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw io_error("make a pair of sockets for the terminal");
  }
  in_.reset(ends[0]);
  end_->out.reset(ends[1]);
  ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  thread_ = start_thread_with_signals_blocked([end = end_] {
    pass_on(end.get());
    ::shutdown(end->out.get(), SHUT_RDWR);
  });
}

TerminalPump::~TerminalPump() {
  ::shutdown(in_.get(), SHUT_WR);
  if (thread_.joinable()) thread_.join();
}

bool TerminalPump::finish(Deadline until) {
  ::shutdown(in_.get(), SHUT_WR);
  while (thread_.joinable()) {
    pollfd over{in_.get(), 0, 0};  // POLLHUP is always reported
    const int ready = ::poll(&over, 1, until.left_poll_ms());
    if (ready > 0) thread_.join();
    if (ready == 0) thread_.detach();
    if (ready == 0) return false;
  }
  return true;
}

size_t TerminalPump::unread() const {
  int bytes = 0;
  return ::ioctl(end_->out.get(), FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes)
                                                                      : 0;
}

void TerminalPump::pass_on(End* end) {
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t got = ::read(end->out.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          ::write(end->terminal, bytes.data() + done, static_cast<size_t>(got - done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) {  // another process made the terminal non-blocking
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      if (put < 0) {
        end->error = errno;
        return;
      }
      done += put;
    }
  }
}

}  // namespace lockstep::inline internal
