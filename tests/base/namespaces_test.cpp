#include "lockstep/base/namespaces.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/namespaces.h"

namespace lockstep {
namespace {

/// Runs `body` in a child, which may enter other namespaces; returns its result.
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OwnUser, IsTheEffectiveOne) {
  EXPECT_TRUE(is_own_user(::geteuid()));
  EXPECT_FALSE(is_own_user(::geteuid() + 1));
}

TEST(OwnUser, WhoHasNoNumberIsNobodysOwnAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const int status = status_of_child([] {
    ::unshare(CLONE_NEWUSER);
    return is_own_user(::geteuid()) ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(PidSpace, IsOneForAParentAndItsChild) {
  const uint64_t own = pid_space();
  EXPECT_NE(own, 0u);
  EXPECT_EQ(status_of_child([own] { return pid_space() == own ? 0 : 1; }), 0);
}

TEST(PidSpace, IsNoneWhereProcIsAnothersAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const int status = status_of_child([] {
    testing::enter_user_namespace(CLONE_NEWPID);
    testing::enter_pid_namespace();
    return pid_space() == 0 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(OwnNumber, IsTheOneOfThisNamespaceHere) {
  const OwnNumber own = own_number(::getpid());
  EXPECT_EQ(own.pid, ::getpid());
  EXPECT_EQ(own.space, pid_space());
  EXPECT_EQ(own_number(1 << 30).pid, 0);
  EXPECT_EQ(own_number(1 << 30).space, 0u);
}

TEST(OwnNumber, OfAContainersProcessIsTheOneInThereAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const int status = status_of_child([outside = pid_space()] {
    testing::enter_user_namespace(CLONE_NEWPID);
    testing::enter_pid_namespace();
    // /proc is still the one of outside.
    const int pid = std::stoi(std::filesystem::read_symlink("/proc/self").string());
    const OwnNumber own = own_number(pid);
    return pid != 1 && own.pid == 1 && own.space != 0 && own.space != outside ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep
