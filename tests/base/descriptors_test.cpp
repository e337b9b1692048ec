#include "lockstep/base/descriptors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "tests/support/refused_calls.h"

namespace lockstep {
namespace {

/// Lowers the soft limit of the process; the destructor restores it.
class LowLimit {
 public:
  explicit LowLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = limit;
    ::setrlimit(RLIMIT_NOFILE, &low);
  }
  ~LowLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

TEST(Descriptors, TheSoftLimitBecomesTheHardOne) {
  const LowLimit low(64);
  EXPECT_TRUE(raise_soft_descriptor_limit());
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, low.hard());
  EXPECT_FALSE(raise_soft_descriptor_limit());
}

TEST(Descriptors, AnErrorSaysHowManyAreOpenOfHowMany) {
  const LowLimit low(64);
  std::vector<UniqueFd> all;
  do {
    all.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (all.back());
  const Error error = io_error("open /dev/null");
  const std::string what = error.what();
  EXPECT_EQ(what,
            "open /dev/null: Too many open files (out of file descriptors: 64 of limit 64 are "
            "open; raise it, ulimit -n)");
}

TEST(Descriptors, OtherErrorsSayNothingOfThem) {
  EXPECT_EQ(descriptor_shortage(ENOENT), "");
  EXPECT_NE(descriptor_shortage(ENFILE), "");
}

/// In a process of its own: opens descriptors, closes all from 3 on, and ends with 0 if they are.
[[noreturn]] void close_all_from_3() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int last = static_cast<int>(limit.rlim_cur) - 1;
  for (const int fd : {3, 70, last}) ::dup2(2, fd);
  close_from(3);
  for (int fd = 0; fd <= last; ++fd) {
    if ((::fcntl(fd, F_GETFD) >= 0) != (fd < 3)) ::_exit(1);
  }
  ::_exit(0);
}

TEST(Descriptors, AllFromOneOnAreClosed) {
  const LowLimit low(1024);
  EXPECT_EXIT(close_all_from_3(), ::testing::ExitedWithCode(0), "");
  const std::vector<int> also_without_a_list[] = {{SYS_close_range}, {SYS_close_range, SYS_openat}};
  for (const auto& calls : also_without_a_list) {
    for (const int error : {ENOSYS, EPERM}) {
      EXPECT_EXIT(
          {
            testing::refuse_calls(calls, error);
            close_all_from_3();
          },
          ::testing::ExitedWithCode(0), "");
    }
  }
}

}  // namespace
}  // namespace lockstep
