#include "lockstep/observe/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

Progress example() {
  Progress progress;
  progress.epoch = 2;
  progress.num_epochs = 5;
  progress.step = 200;
  progress.num_steps = 500;
  progress.loss = 1.23456;
  progress.lr = 0.1;
  progress.images_per_s = 312.4;
  progress.left = seconds(62);
  return progress;
}

/// Columns on the screen: bytes that start a character.
int columns(const std::string& text) {
  int count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return count;
}

TEST(Progress, WideLineHasAll) {
  EXPECT_EQ(format_progress(example(), 200),
            "epoch 2/5  ━━━━━━━━────────────   40%  200/500  loss 1.2346  lr 0.1  312 img/s  "
            "ETA 1:02");
}

TEST(Progress, ATitleStandsForTheEpoch) {
  Progress progress;
  progress.title = "predict";
  progress.step = 1;
  progress.num_steps = 4;
  progress.images_per_s = 0.44;
  EXPECT_EQ(format_progress(progress, 200), "predict  ━━━━━───────────────   25%  1/4  0.4 img/s");
}

TEST(Progress, NarrowLinesKeepWhatMattersMost) {
  EXPECT_EQ(format_progress(example(), 70),
            "epoch 2/5   40%  200/500  loss 1.2346  lr 0.1  312 img/s  ETA 1:02");
  EXPECT_EQ(format_progress(example(), 40), "epoch 2/5   40%  loss 1.2346  ETA 1:02");
  EXPECT_EQ(format_progress(example(), 4), " 40%");
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(columns(format_progress(example(), width)), width);
  }
}

TEST(Progress, LeavesOutWhatIsNotKnown) {
  Progress progress;
  progress.num_steps = 10;
  EXPECT_EQ(format_progress(progress, 200), "epoch 1/1  ────────────────────    0%  0/10");
  progress.num_steps = 0;
  EXPECT_NE(format_progress(progress, 200), "");
}

TEST(Progress, HundredPercentMeansDone) {
  Progress progress;
  progress.step = 999;
  progress.num_steps = 1000;
  EXPECT_NE(format_progress(progress, 200).find(" 99%"), std::string::npos);
}

/// A terminal of 60 columns with a readable screen.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(master_.get());
    ::unlockpt(master_.get());
    slave_ = UniqueFd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    winsize size{};
    size.ws_col = 60;
    ::ioctl(slave_.get(), TIOCSWINSZ, &size);
  }
  int fd() const { return slave_.get(); }
  /// A terminal hands written text over in parts.
  std::string read_to(const std::string& end) {
    std::string text;
    while (!text.ends_with(end) && has_text(10'000)) {
      char buffer[4096];
      const ssize_t got = ::read(master_.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }
  bool has_text(int wait_ms) {
    pollfd ready{master_.get(), POLLIN, 0};
    return ::poll(&ready, 1, wait_ms) == 1;
  }

 private:
  UniqueFd master_;
  UniqueFd slave_;
};

TEST(ProgressLine, RedrawsInPlaceAndEndsWithALine) {
  ::setenv("TERM", "xterm", 1);
  Terminal terminal;
  {
    ProgressLine line(terminal.fd());
    ASSERT_TRUE(line.active());
    Progress progress = example();
    for (int i = 0; i < 1000; ++i) {
      progress.step = i / 2;
      line.update(progress);
    }
  }
  const std::string screen = terminal.read_to("\x1b[K\r\n");
  EXPECT_TRUE(screen.starts_with("\repoch 2/5    0%  loss 1.2346")) << screen;
  EXPECT_TRUE(screen.ends_with("\x1b[K\r\n")) << screen;
  EXPECT_NE(screen.find(" 99%"), std::string::npos) << "the last state is drawn at the end";
  EXPECT_LT(screen.size(), 2000u) << "a thousand updates at once are not a thousand lines";
}

TEST(ProgressLine, MakesRoomForALogLine) {
  ::setenv("TERM", "xterm", 1);
  Terminal terminal;
  ProgressLine line(terminal.fd());
  line.update(example());
  line.clear();
  EXPECT_TRUE(terminal.read_to("\r\x1b[K").ends_with("\r\x1b[K"));
  line.clear();
  EXPECT_FALSE(terminal.has_text(50));
  line.update(example());
  EXPECT_NE(terminal.read_to("\x1b[K").find("epoch 2/5"), std::string::npos)
      << "drawn again at once";
}

/// A pipe, and the bytes written into it.
class Pipe {
 public:
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe");
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
  }
  int fd() const { return writer_.get(); }
  std::string read() {
    char buffer[4096];
    const ssize_t got = ::read(reader_.get(), buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "";
  }

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

TEST(ProgressLine, PipedItIsALineNowAndThen) {
  Pipe pipe;
  {
    ProgressLine line(pipe.fd());
    ASSERT_TRUE(line.active());
    const auto start = ProgressLine::Clock::now();
    line.update(example(), start);
    line.update(example(), start + seconds(4));
    EXPECT_EQ(pipe.read(), "") << "a short run has none";
    line.update(example(), start + seconds(5));
    EXPECT_EQ(pipe.read(), format_progress(example(), 200) + "\n");
    line.update(example(), start + seconds(34));
    line.clear();
    EXPECT_EQ(pipe.read(), "");
    line.update(example(), start + seconds(35));
    EXPECT_EQ(pipe.read(), format_progress(example(), 200) + "\n");
  }
  EXPECT_EQ(pipe.read(), "");
}

TEST(ProgressLine, APipeToATerminalIsOne) {
  Pipe pipe;
  ::setenv("LOCKSTEP_TERMINAL", "61", 1);
  ::setenv("LOCKSTEP_TERMINAL_PIPE", pipe_name(pipe.fd()).c_str(), 1);
  {
    ProgressLine line(pipe.fd());
    line.update(example());
    EXPECT_EQ(pipe.read(), "\r" + format_progress(example(), 60) + "\x1b[K");
  }
  EXPECT_EQ(pipe.read(), "\n");
  Pipe other;  // as of `2>&1 | tee log`
  {
    ProgressLine line(other.fd());
    line.update(example());
  }
  EXPECT_EQ(other.read().find('\r'), std::string::npos);
  ::unsetenv("LOCKSTEP_TERMINAL");
  ::unsetenv("LOCKSTEP_TERMINAL_PIPE");
}

TEST(ProgressLine, SaysNothingWhenUnwanted) {
  Pipe pipe;
  ProgressLine line(pipe.fd(), false);
  EXPECT_FALSE(line.active());
  for (const int later : {0, 10}) {
    line.update(example(), ProgressLine::Clock::now() + seconds(later));
  }
  EXPECT_EQ(pipe.read(), "");
  Terminal terminal;
  EXPECT_FALSE(ProgressLine(terminal.fd(), false).active());
}

TEST(Progress, SaysWhatHoldsItUp) {
  Progress progress;
  progress.note = "waits for rank 3";
  EXPECT_NE(format_progress(progress, 200).find("  waits for rank 3"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
