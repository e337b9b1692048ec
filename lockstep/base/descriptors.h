#pragma once
// How many descriptors (files, sockets, shared memory) this process may have open.

#include <string>

namespace lockstep {

/// Raises this process's soft limit to the hard one. True when that is more than before. Programs
/// that it starts later inherit it.
bool raise_soft_descriptor_limit();

/// After EMFILE: "40 of limit 40 are open: raise it, ulimit -n"; after ENFILE what is short then;
/// else "". Changes no errno.
std::string descriptor_shortage(int error_number);

}  // namespace lockstep
