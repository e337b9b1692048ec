#pragma once
// What the kernel says of a process.

#include <cstdint>
#include <string>

namespace lockstep {

/// "running", "sleeping", "waiting for a disk", "stopped" or "dead"; "" where it cannot be told.
/// A process that sleeps in one thread may compute in another: any that runs counts.
std::string process_state(int pid);
/// The same, of a `pid` in the numbering `space` (lockstep::pid_space()); "" where that is not this
/// process's, for which it may be the pid of another.
std::string process_state(int pid, uint64_t space);

}  // namespace lockstep
