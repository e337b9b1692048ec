#pragma once
// What only /proc tells.

#include <string>
#include <vector>

namespace lockstep {

/// Errors: kUnavailable (/proc is not mounted, as in a chroot), saying how to mount it.
void need_proc();

/// What /proc/PID/stat has from the process's state on: proc(5)'s field n at n - 3. Empty: there is
/// no such process, or it cannot be seen.
std::vector<std::string> stat_fields(int pid);

/// Path of the program that this process runs. Errors: as need_proc(); kIo.
std::string own_program();

/// The folder that it is in; empty where that cannot be told.
std::string program_folder();

}  // namespace lockstep
