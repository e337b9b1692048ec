#include "lockstep/data/fetch/transfer_bar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
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

std::string drawn_by(int fd, int reader) {
  {
    TransferBar bar("f", fd);
    bar.update(1, 4);
    bar.update(4, 4);
  }
  std::string text(4096, '\0');
  const ssize_t got = ::read(reader, text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

TEST(TransferBar, DrawsOnATerminalAlone) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const UniqueFd terminal(master);
  const UniqueFd screen(slave);
  EXPECT_NE(drawn_by(slave, master).find("100%  4 B of 4 B"), std::string::npos);

  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  EXPECT_EQ(drawn_by(ends[1], ends[0]), "");
}

}  // namespace
}  // namespace lockstep
