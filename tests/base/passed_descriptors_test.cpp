#include "lockstep/base/passed_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace lockstep {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    one.reset(ends[0]);
    other.reset(ends[1]);
  }
  UniqueFd one;
  UniqueFd other;
};

UniqueFd some_file() {
  return UniqueFd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
}

TEST(PassedDescriptors, ComeInOrderWithTheirBytesAndCloseOnExec) {
  Pair pair;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const UniqueFd out(pipe[0]);
  const UniqueFd in(pipe[1]);
  EXPECT_EQ(send_with_descriptors(pair.one.get(), "three", pipe), 5);
  std::array<char, 16> bytes{};
  std::vector<UniqueFd> fds;
  ASSERT_EQ(receive_with_descriptors(pair.other.get(), bytes, &fds), 5);
  EXPECT_STREQ(bytes.data(), "three");
  ASSERT_EQ(fds.size(), 2U);
  EXPECT_EQ(::fcntl(fds[0].get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::write(fds[1].get(), "x", 1), 1);
  ASSERT_EQ(::read(out.get(), bytes.data(), 1), 1);
}

TEST(PassedDescriptors, BytesMayComeWithoutAny) {
  Pair pair;
  std::array<char, 16> bytes{};
  std::vector<UniqueFd> fds;
  ASSERT_EQ(::send(pair.one.get(), "ab", 2, 0), 2);
  EXPECT_EQ(receive_with_descriptors(pair.other.get(), bytes, &fds), 2);
  EXPECT_EQ(receive_with_descriptors(pair.other.get(), bytes, &fds, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(fds.empty());
  pair.one.reset();
  EXPECT_EQ(receive_with_descriptors(pair.other.get(), bytes, &fds), 0);
  const int own = pair.other.get();
  EXPECT_EQ(send_with_descriptors(own, "d", {&own, 1}), -1) << "and no SIGPIPE";
}

TEST(PassedDescriptors, NoneAndMoreThanThereIsRoomForAreNotSent) {
  Pair pair;
  EXPECT_EQ(send_with_descriptors(pair.one.get(), "x", {}), -1);
  EXPECT_EQ(errno, EINVAL);
  const UniqueFd file = some_file();
  const std::array<int, kMaxPassedDescriptors + 1> many{file.get(), file.get(), file.get(),
                                                        file.get(), file.get()};
  EXPECT_EQ(send_with_descriptors(pair.one.get(), "x", many), -1);
  EXPECT_EQ(errno, EINVAL);
}

int number_of_next_descriptor() {
  return some_file().get();
}

/// 0: of a message's descriptors none was taken, and none stays open.
int receive_where_one_may_be_opened(const Pair& pair) {
  const int next = number_of_next_descriptor();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(next) + 1;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  std::array<char, 16> bytes{};
  std::vector<UniqueFd> fds;
  if (receive_with_descriptors(pair.other.get(), bytes, &fds) != 1) return 2;
  if (!fds.empty()) return 3;
  return number_of_next_descriptor() == next ? 0 : 4;
}

TEST(PassedDescriptors, WithoutRoomForAllNoneStaysOpen) {
  Pair pair;
  const UniqueFd file = some_file();
  const std::array<int, 3> three{file.get(), file.get(), file.get()};
  ASSERT_EQ(send_with_descriptors(pair.one.get(), "x", three), 1);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(receive_where_one_may_be_opened(pair));
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep
