#pragma once
// Users and processes by number: containers of one host number them differently.

#include <sys/types.h>

#include <cstdint>

namespace lockstep {

/// Names this process's numbering of processes (its pid namespace) among those of this kernel. Two
/// processes with the same one find each other by pid, also in /proc. 0: they do not, for /proc is
/// another numbering's, or missing.
uint64_t pid_space();

/// True when `user`, an owner as the kernel names it to this process, is this process's own
/// effective user. The kernel translates users from one user namespace to another; all that have no
/// number in this one look like one, 65534, who is then nobody's own.
bool is_own_user(uid_t user);

/// Does the process at the other end of `fd`, a unix socket, belong to `user`? The kernel says so.
/// False for other sockets.
bool is_process_of(uid_t user, int fd);

}  // namespace lockstep
