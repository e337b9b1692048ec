#pragma once
// The state of a process, from the kernel.

#include <cstdint>
#include <string>

namespace lockstep::inline internal {

/// "running", "sleeping", "waiting for a disk", "stopped" or "dead"; "" if it is unknown. A process
/// that sleeps in one thread may compute in another: any running thread counts.
std::string process_state(int pid);
/// The same for a `pid` in the numbering `space` (lockstep::pid_space()). "" if that is not this
/// process's numbering, in which `pid` may be another process.
std::string process_state(int pid, uint64_t space);

}  // namespace lockstep::inline internal
