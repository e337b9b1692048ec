#pragma once
// Simulates a container by the kernel's namespaces.

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep::testing {

/// Containers may forbid the creation of others.
bool may_enter_namespaces();

/// Begins a test *AsRoot that creates namespaces. A user without that right leaves it to root, for
/// whom scripts/test.sh runs it; root without that right is a failure.
#define LOCKSTEP_NEED_NAMESPACES()                                          \
  if (!::lockstep::testing::may_enter_namespaces()) {                       \
    ASSERT_NE(::geteuid(), 0u) << "root may make no namespaces here";       \
    GTEST_SKIP() << "root may make namespaces; scripts/test.sh sees to it"; \
  }                                                                         \
  static_assert(true)

/// As a container without root: this process's user is root inside, and no other user has a number.
/// `other_spaces`: further CLONE_NEW... For a process of one thread. Errors: std::runtime_error.
void enter_user_namespace(int other_spaces = 0);

/// After enter_user_namespace(CLONE_NEWPID): continues as the first process there, in a fork. This
/// process waits for it and ends in the same way.
void enter_pid_namespace();

}  // namespace lockstep::testing
