#pragma once
// Being in a container, as far as the kernel's namespaces go.

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep::testing {

/// Containers may be kept from making others.
bool may_enter_namespaces();

/// Begins a test *AsRoot that makes namespaces. A user that may not leaves it to root, for whom
/// scripts/test.sh runs it; a root that may not is a failure.
#define LOCKSTEP_NEED_NAMESPACES()                                          \
  if (!::lockstep::testing::may_enter_namespaces()) {                       \
    ASSERT_NE(::geteuid(), 0u) << "root may make no namespaces here";       \
    GTEST_SKIP() << "root may make namespaces; scripts/test.sh sees to it"; \
  }                                                                         \
  static_assert(true)

/// As a container without root: this process's user is root in there, and nobody else has a number.
/// `other_spaces`: further CLONE_NEW... For a process of one thread. Errors: std::runtime_error.
void enter_user_namespace(int other_spaces = 0);

/// After enter_user_namespace(CLONE_NEWPID): goes on as the first process there, in a fork, while
/// this one waits for it and ends as it ends.
void enter_pid_namespace();

}  // namespace lockstep::testing
