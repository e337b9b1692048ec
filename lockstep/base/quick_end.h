#pragma once

namespace lockstep::inline internal {

/// For programs that link large libraries; call it first in main(). At exit, atexit() functions and
/// objects from after this call end as usual, and streams are flushed. Static objects from before
/// main() are left to the kernel. The library libtorch needs 20 to 50 ms of CPU to destroy its
/// tables, and copies their pages if ranks were forked from one process.
void end_without_teardown();

}  // namespace lockstep::inline internal
