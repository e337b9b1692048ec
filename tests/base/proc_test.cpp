#include "lockstep/base/proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

TEST(Proc, ProcessesAreTheNumbersInAscendingOrder) {
  const TempFolder root;
  for (const auto* name : {"self", "10", "9", "1", "sys"}) {
    std::filesystem::create_directories(root.path() / "proc" / name);
  }
  EXPECT_EQ(processes(root.path().string()), (std::vector<pid_t>{1, 9, 10}));
  EXPECT_EQ(processes(root.path().string() + "/none"), std::vector<pid_t>());
  EXPECT_EQ(std::ranges::count(processes(), ::getpid()), 1);
}

TEST(Proc, OwnCgroupsHaveControllersAndPath) {
  const TempFolder root;
  std::filesystem::create_directories(root.path() / "proc/self");
  std::ofstream(root.path() / "proc/self/cgroup") << "8:cpu,cpuacct:/a:b\nbroken\n0::/\n";
  const auto lines = own_cgroups(root.path().string());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].controllers, "cpu,cpuacct");
  EXPECT_EQ(lines[0].path, "/a:b");
  EXPECT_EQ(lines[1].controllers, "");
  EXPECT_EQ(lines[1].path, "/");
}

}  // namespace
}  // namespace lockstep
