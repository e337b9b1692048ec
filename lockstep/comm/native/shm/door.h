#pragma once
// Memory of a process into whose /proc/PID/fd other processes of its user may not look: one with
// file capabilities, say, or one that changed its user. It hands its descriptors out itself.

#include <sys/types.h>

#include "lockstep/base/unique_fd.h"

namespace lockstep::shm {

/// Where the kernel keeps other processes out of this one (PR_GET_DUMPABLE): from now on a thread
/// hands descriptors of Lockstep's memory, and of no other file, to processes of this user, over a
/// unix socket of the abstract namespace. Otherwise nothing is done. Once a process is enough.
/// Never throws: without it, other ranks do without shared memory.
void open_door();

/// The descriptor `fd` of process `pid`, asked for at its door; empty when there is none, or it is
/// another user's. Takes at most a second.
UniqueFd ask_at_door(pid_t pid, int fd);

}  // namespace lockstep::shm
