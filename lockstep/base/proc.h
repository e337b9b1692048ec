#pragma once
// What only /proc tells.

#include <string>

namespace lockstep {

/// Errors: kUnavailable (/proc is not mounted, as in a chroot), saying how to mount it.
void need_proc();

/// Path of the program that this process runs. Errors: as need_proc(); kIo.
std::string own_program();

/// The folder that it is in; empty where that cannot be told.
std::string program_folder();

}  // namespace lockstep
