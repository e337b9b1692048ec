#include "lockstep/data/fetch/transfer_bar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(TransferBar, FormatsWhatIsKnown) {
  EXPECT_EQ(format_transfer("f", 45 * kMiB, 100 * kMiB, 5.0 * kMiB),
            "f  [#########           ]   45%  45.0 MiB of 100.0 MiB  5.0 MiB/s  0:11 left");
  EXPECT_EQ(format_transfer("f", 100 * kMiB, 100 * kMiB, 0),
            "f  [####################]  100%  100.0 MiB of 100.0 MiB  0 B/s");
  EXPECT_EQ(format_transfer("f", 3 * kMiB, 0, 1.0 * kMiB), "f  3.0 MiB  1.0 MiB/s");
}

void draw_on(int fd) {
  TransferBar bar("f", fd);
  bar.update(1, 4);
  bar.update(4, 4);
}

/// Reads up to the end of a line, for ten seconds at most: a terminal delivers it in parts.
std::string line_from(int fd) {
  std::string text;
  pollfd readable{fd, POLLIN, 0};
  while (text.find('\n') == std::string::npos && ::poll(&readable, 1, 10'000) > 0) {
    char bytes[4096];
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got <= 0) break;
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

TEST(FormatCount, CountsImages) {
  EXPECT_EQ(format_count("synth-ocr", 450, 1000, 275),
            "synth-ocr  [#########           ]   45%  450 of 1000 images  275/s  0:02 left");
  EXPECT_EQ(format_count("x", 2, 2, 10), "x  [####################]  100%  2 of 2 images  10/s");
}

TEST(TransferBar, DrawsOnATerminalAlone) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const UniqueFd terminal(master);
  const UniqueFd screen(slave);
  draw_on(slave);
  const std::string text = line_from(master);
  EXPECT_NE(text.find("100%  4 B of 4 B"), std::string::npos) << text;

  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  draw_on(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1) << "a bar was drawn into a pipe";
}

}  // namespace
}  // namespace lockstep
