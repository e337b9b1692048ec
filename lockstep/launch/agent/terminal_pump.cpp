#include "lockstep/launch/agent/terminal_pump.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "lockstep/base/error.h"

namespace lockstep {

TerminalPump::TerminalPump(int terminal) : terminal_(terminal) {
  // Not a pipe: a forked process that has a copy of this end must not keep the other from its end.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw io_error("make a pair of sockets for the terminal");
  }
  in_.reset(ends[0]);
  out_.reset(ends[1]);
  ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { pass_on(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TerminalPump::~TerminalPump() {
  ::shutdown(in_.get(), SHUT_WR);
  thread_.join();
}

void TerminalPump::pass_on() {
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t got = ::read(out_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(terminal_, bytes.data() + done, static_cast<size_t>(got - done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) {  // somebody else's way of opening it
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      if (put < 0) {
        error_ = errno;
        ::shutdown(out_.get(), SHUT_RDWR);
        return;
      }
      done += put;
    }
  }
}

}  // namespace lockstep
