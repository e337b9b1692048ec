#pragma once
// What the kernel says of a process.

#include <string>

namespace lockstep {

/// "running", "sleeping", "waiting for a disk", "stopped" or "dead"; "" where it cannot be told.
/// A process that sleeps in one thread may compute in another: any that runs counts.
std::string process_state(int pid);

}  // namespace lockstep
