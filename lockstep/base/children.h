#pragma once
// Management of child processes by kernel interfaces.

#include <sys/types.h>

#include <optional>
#include <vector>

#include "lockstep/base/exit_status.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Descendants whose parent dies become this process's children, so that none is lost.
void adopt_orphans();

/// A descriptor that becomes readable when the process ends; epoll reports several in the order of
/// their ends. Errors: kIo.
UniqueFd open_pidfd(pid_t pid);

/// The same; empty without such a process, or without pidfds in the kernel.
UniqueFd try_open_pidfd(pid_t pid);

/// Reaps this child if it has ended.
std::optional<ExitStatus> reap(pid_t pid);

/// The next child that has ended and has not been reaped; 0: none.
pid_t ended_child();

/// True if a signal is ending the process: the kernel still frees its memory.
bool dying_by_signal(pid_t pid);

/// True if the group has a process, including dead ones that have not been reaped.
bool group_exists(pid_t group);

/// Kills all remaining children except these, and their descendants, and waits some seconds for
/// them.
void kill_remaining_children(const std::vector<pid_t>& except);

}  // namespace lockstep
