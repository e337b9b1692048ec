#include "lockstep/store/tcp/server_connection.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "lockstep/error.h"

namespace lockstep {
namespace {

/// From now on recv() fails in this process, as it does once after a connection's loss.
bool fail_recv(int failure) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_recvfrom, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(failure)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum Outcome { kGone, kStays, kRefused, kNotTried };

int outcome_of(int failure) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return kNotTried;
  const UniqueFd client(ends[1]);
  ServerConnection connection(UniqueFd(ends[0]), 1, "secret");
  if (!fail_recv(failure)) return kNotTried;
  try {
    return connection.receive([](const RequestFrame&) {}) ? kStays : kGone;
  } catch (const Error&) {
    return kRefused;
  }
}

/// In a process of its own, which cannot undo it.
int outcome_in_child(int failure) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(outcome_of(failure));
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kNotTried;
}

// A host without power: its network gives EHOSTUNREACH, a router ENETUNREACH.
TEST(ServerConnection, AClientWhoseHostIsOutOfReachIsGoneAndNotRefused) {
  for (const int failure : {ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH})
    EXPECT_EQ(outcome_in_child(failure), kGone) << failure;
  EXPECT_EQ(outcome_in_child(EAGAIN), kStays);
  EXPECT_EQ(outcome_in_child(EBADF), kRefused);
}

}  // namespace
}  // namespace lockstep
