#include "lockstep/launch/process/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace lockstep {
namespace {

/// While it lives, this process's standard error is a pipe that is read only on request.
class ErrorPipe {
 public:
  ErrorPipe() : before_(::dup(STDERR_FILENO)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    end_.reset(ends[0]);
    ::fcntl(end_.get(), F_SETFL, O_NONBLOCK);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  ~ErrorPipe() { ::dup2(before_.get(), STDERR_FILENO); }
  std::string take() const {
    std::string text(1 << 16, '\0');
    const ssize_t got = ::read(end_.get(), text.data(), text.size());
    return text.substr(0, got > 0 ? static_cast<size_t>(got) : 0);
  }

 private:
  const UniqueFd before_;
  UniqueFd end_;
};

TEST(Console, OwnLinesAreDroppedAndCountedWhileNobodyReads) {
  const ErrorPipe pipe;
  Console console;
  while (!console.full()) console.put(2, std::string(4000, 'x'));
  for (int i = 0; i < 50; ++i) console.put(2, std::string(4000, 'x'));  // more than a pipe takes
  console.put_log("first\n");
  console.put_log("second\n");
  std::string text;
  while (console.waiting_stream() >= 0) {
    text += pipe.take();
    console.flush();
  }
  console.put_log("third\n");
  console.put_log("fourth\n");
  text += pipe.take();
  const std::string end =
      "lockstep: warn: 2 lines of the agent's own were dropped: nobody read its output\n"
      "third\nfourth\n";
  ASSERT_GT(text.size(), end.size());
  EXPECT_EQ(text.substr(text.size() - end.size()), end);
  EXPECT_EQ(text.find("first"), std::string::npos);
}

/// A terminal, with both its ends.
struct Terminal {
  Terminal() : end(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    char name[64];
    if (::grantpt(end.get()) != 0 || ::unlockpt(end.get()) != 0 ||
        ::ptsname_r(end.get(), name, sizeof name) != 0) {
      throw std::runtime_error("make a terminal");
    }
    own.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  UniqueFd end;
  UniqueFd own;
};

/// While it lives, this process's standard streams are one terminal.
class OnTerminal {
 public:
  explicit OnTerminal(int terminal) {
    ::dup2(terminal, STDOUT_FILENO);
    ::dup2(terminal, STDERR_FILENO);
  }
  ~OnTerminal() {
    ::dup2(out_.get(), STDOUT_FILENO);
    ::dup2(err_.get(), STDERR_FILENO);
  }

 private:
  const UniqueFd out_{::dup(STDOUT_FILENO)};
  const UniqueFd err_{::dup(STDERR_FILENO)};
};

TEST(Console, AFootIsTakenAwayBeforeALineOfEitherStream) {
  const Terminal terminal;
  {
    const OnTerminal here(terminal.own.get());
    Console console({true, true, true});
    console.set_foot(2, "bar");
    console.flush();
    console.set_foot(2, "");
    console.put(1, "out");
    console.flush();
    console.set_foot(2, "next");
    console.flush();
    console.put(2, "err");
    console.put(1, "last");
    console.set_foot(2, "");
    console.drain();
  }
  const std::string away = "\r\x1b[K";
  const std::string expected =
      away + "bar" + away + "out\r\n" + away + "next" + away + "err\r\nlast\r\n";
  std::string text;
  pollfd readable{terminal.end.get(), POLLIN, 0};
  while (text.size() < expected.size() && ::poll(&readable, 1, 10'000) > 0) {  // it comes in parts
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(terminal.end.get(), bytes.data(), bytes.size());
    if (got <= 0) break;
    text.append(bytes.data(), static_cast<size_t>(got));
  }
  EXPECT_EQ(text, expected);
}

TEST(TerminalPump, NeverBlocksAndLosesNothing) {
  Terminal terminal;
  std::string given;
  std::string seen;
  {
    TerminalPump pump(terminal.own.get());
    const std::string chunk(1000, 'y');
    while (::write(pump.fd(), chunk.data(), chunk.size()) == 1000) given += chunk;
    EXPECT_EQ(errno, EAGAIN);
    ASSERT_GT(given.size(), 1U << 16) << "a terminal nobody reads takes less";
    std::string text(1 << 16, '\0');
    while (seen.size() < given.size()) {
      const ssize_t got = ::read(terminal.end.get(), text.data(), text.size());
      ASSERT_GT(got, 0);
      seen += text.substr(0, static_cast<size_t>(got));
    }
  }
  EXPECT_EQ(seen.substr(0, given.size()), given);
}

TEST(TerminalPump, SaysWhyATerminalFails) {
  Terminal terminal;
  TerminalPump pump(terminal.own.get());
  terminal.end.reset();
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  while (::write(pump.fd(), "y", 1) == 1 || errno == EAGAIN) {
    pollfd item{pump.fd(), POLLOUT, 0};
    ::poll(&item, 1, -1);
  }
  EXPECT_EQ(errno, EPIPE);
  ::signal(SIGPIPE, before);
  EXPECT_EQ(pump.error(), EIO);
}

}  // namespace
}  // namespace lockstep
