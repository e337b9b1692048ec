#pragma once
// Users and processes by number; containers of one host number them differently.

#include <sys/types.h>

#include <cstdint>

namespace lockstep::inline internal {

/// Number of this process's namespace of a kind, as "pid" or "net", on this kernel; 0: unknown.
uint64_t namespace_id(const char* kind);

/// Identifies this process's numbering of processes (its pid namespace) on this kernel. Two
/// processes with the same value find each other by pid, also in /proc. 0: they do not, because
/// /proc belongs to another numbering, or is missing.
uint64_t pid_space();

/// Identifies this process's numbering of processes among all hosts and their boots.
uint64_t pid_space_of_all_hosts();

/// A process as it numbers itself.
struct OwnNumber {
  int pid = 0;         ///< In its own pid namespace; in others it has other numbers.
  uint64_t space = 0;  ///< That namespace, as pid_space() is there.
};
/// Of the process that has the number `pid` in /proc, such as one of a container. All 0 if it has
/// ended, or may not be read. Cost: two reads.
OwnNumber own_number(int pid);

/// True if `user`, an owner as the kernel reports it to this process, is this process's own
/// effective user. The kernel translates users from one user namespace to another. All users
/// without a number in this one appear as 65534, which is then never this user.
bool is_own_user(uid_t user);

/// True if the process at the other end of `fd`, a unix socket, belongs to `user`. The kernel
/// reports that user. False for other sockets.
bool is_process_of(uid_t user, int fd);

}  // namespace lockstep::inline internal
