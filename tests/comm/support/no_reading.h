#pragma once
// Simulates a kernel that does not let one process read another's memory.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "tests/comm/support/conformance.h"

namespace lockstep::testing {

/// Applies to this thread, and to threads that it starts.
inline void forbid_reading_others() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  require(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "seccomp");
  char byte = 0;
  const iovec here{&byte, 1};
  require(::process_vm_readv(::getpid(), &here, 1, &here, 1, 0) == -1 && errno == EPERM,
          "process_vm_readv is still allowed");
}

}  // namespace lockstep::testing
