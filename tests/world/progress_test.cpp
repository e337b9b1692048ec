// Reports of a rank without an agent, read from its memory.

#include "lockstep/progress.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/world/step_memory.h"

namespace lockstep {
namespace {

/// A child makes memory of its own. Its file descriptors run out, and are there again later.
int slots_of_child_without_descriptors() {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const rlimit none = {0, descriptors.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool first = slot_for_reports() != nullptr;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
  const bool second = slot_for_reports() != nullptr;
  return (first ? 1 : 0) + (second ? 2 : 0);
}

TEST(OwnSteps, AFailureToMakeThemIsRemembered) {
  ASSERT_NE(slot_for_reports(), nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(slots_of_child_without_descriptors());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: it had memory at once, 2: it tried again";
}

}  // namespace
}  // namespace lockstep
