#pragma once
// libtorch's own engines in the table of back ends (lockstep/comm/backends.h).

namespace lockstep {

/// Adds them, once per process. Done before main() in programs that use lockstep/collectives.h.
bool register_c10d_backends();

}  // namespace lockstep
