#include "lockstep/base/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

/// A private /proc and /sys, and, during its lifetime, a soft limit of this process.
class ProcessLimits : public ::testing::Test {
 protected:
  ProcessLimits() {
    ::getrlimit(RLIMIT_NPROC, &before_);
    const rlimit limit = {40, before_.rlim_max};
    ::setrlimit(RLIMIT_NPROC, &limit);
  }
  ~ProcessLimits() override { ::setrlimit(RLIMIT_NPROC, &before_); }

  std::string root() const { return folder_.path().string(); }
  void write(const std::string& path, const std::string& text) const {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void process(int pid, int threads, unsigned user = ::getuid()) const {
    const std::string uid = std::to_string(user);
    write("proc/" + std::to_string(pid) + "/status", "Name:\tx\nUid:\t" + uid + "\t" + uid +
                                                         "\t0\t0\nThreads:\t" +
                                                         std::to_string(threads) + "\n");
  }

 private:
  TempFolder folder_;
  rlimit before_{};
};

TEST_F(ProcessLimits, TheUsersIsNamedWhenItIsReached) {
  process(1, 39);
  process(2, 500, ::getuid() + 1);
  process(3, 1);
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/pids.max", "100\n");
  write("sys/fs/cgroup/job/pids.current", "50\n");
  EXPECT_EQ(process_shortage(EAGAIN, root()),
            "ulimit -u: 40, processes and threads of this user: 40");
}

TEST_F(ProcessLimits, ACgroupsIsNamedAlsoWhereItIsOneAbove) {
  write("proc/self/cgroup", "9:memory:/other\n0::/slice/job\n");
  write("sys/fs/cgroup/slice/job/pids.max", "max\n");
  write("sys/fs/cgroup/slice/job/pids.current", "50\n");
  write("sys/fs/cgroup/slice/pids.max", "100\n");
  write("sys/fs/cgroup/slice/pids.current", "100\n");
  EXPECT_EQ(process_shortage(EAGAIN, root()), "pids.max of cgroup /slice: 100, pids.current: 100");
}

TEST_F(ProcessLimits, TheControllersOwnTreeIsUnderstood) {
  write("proc/self/cgroup", "0::/\n8:pids:/job\n");
  write("sys/fs/cgroup/pids/job/pids.max", "7\n");
  write("sys/fs/cgroup/pids/job/pids.current", "7\n");
  EXPECT_EQ(process_shortage(EAGAIN, root()), "pids.max of cgroup /job: 7, pids.current: 7");
}

TEST_F(ProcessLimits, WhereNoneIsReachedAllAreTold) {
  process(1, 3);
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/pids.max", "100\n");
  write("sys/fs/cgroup/job/pids.current", "50\n");
  EXPECT_EQ(process_shortage(EAGAIN, root()),
            "ulimit -u: 40, processes and threads of this user: 3; pids.max of cgroup /job: 100, "
            "pids.current: 50");
}

TEST_F(ProcessLimits, OtherErrorsHaveNoneAndErrnoStays) {
  EXPECT_EQ(process_shortage(ENOENT, root()), "");
  errno = EAGAIN;
  const std::string what = start_error("start x").what();
  EXPECT_EQ(what.rfind("start x: Resource temporarily unavailable (ulimit -u: 40, ", 0), 0U)
      << what;
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace lockstep
