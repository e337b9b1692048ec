#pragma once

namespace lockstep {

/// For programs that link large libraries, first in main(): when the process exits, what was
/// registered with atexit() and made after this call is ended as ever and streams are flushed, but
/// static objects from before main() are left to the kernel. libtorch takes 20 to 50 ms of CPU to
/// take its tables apart, and copies their pages where ranks were forked from one process.
void end_without_teardown();

}  // namespace lockstep
