// A process group leaves no file behind, in whatever way it ends.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

std::set<std::string> files_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

/// Kills the process that `victim` returns, while both ranks hold a group; then looks for files.
void expect_nothing_left(pid_t (*victim)(const Launched&)) {
  const TempFolder temporary;
  const auto before = files_in("/dev/shm");
  Launched run({"run", "--nproc_per_node", "2", "--", built_program("group_holder")},
               {{"TMPDIR", temporary.path().string()}});
  ASSERT_TRUE(run.wait_for("holding", 2)) << run.err();
  ASSERT_EQ(::kill(victim(run), SIGKILL), 0);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_TRUE(run.wait_all_gone());
  EXPECT_EQ(files_in("/dev/shm"), before);
  EXPECT_EQ(files_in(temporary.path()), std::set<std::string>());
}

TEST(Leftovers, NoneOfAKilledRank) {
  expect_nothing_left([](const Launched& run) {
    const std::string out = run.out();
    return static_cast<pid_t>(std::stoi(out.substr(out.find("holding ") + 8)));
  });
}

TEST(Leftovers, NoneOfAKilledAgent) {
  expect_nothing_left([](const Launched& run) { return run.pid(); });
}

}  // namespace
}  // namespace lockstep::testing
