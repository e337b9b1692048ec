#pragma once
// Looking after child processes by the kernel's means.

#include <sys/types.h>

#include <optional>
#include <vector>

#include "lockstep/base/exit_status.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Descendants whose parent dies become this process's children, so that none gets lost.
void adopt_orphans();

/// Becomes readable when the process ends; epoll reports several in the order of their ends.
/// Errors: kIo.
UniqueFd open_pidfd(pid_t pid);

/// Reaps this child if it has ended.
std::optional<ExitStatus> reap(pid_t pid);

/// The next child that has ended and is not reaped yet; 0: none.
pid_t ended_child();

/// True when the process is on its way out because of a signal: the kernel still frees its memory.
bool dying_by_signal(pid_t pid);

/// True when the group has a process, dead ones that nobody reaped included.
bool group_exists(pid_t group);

/// Kills all remaining children but these, and theirs, and waits for them, for some seconds.
void kill_remaining_children(const std::vector<pid_t>& except);

}  // namespace lockstep
