#pragma once

#include <malloc.h>

namespace lockstep::inline internal {

/// Makes malloc keep freed memory, up to 256 MiB, instead of returning it to the system at once.
/// For a process that repeatedly makes images or tensors of megabytes, and else spends as long on
/// page faults as on the pixels. Applies to the whole process; does nothing on C libraries other
/// than glibc.
inline void keep_freed_memory() noexcept {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the maximum; larger blocks have their own mappings
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

/// Returns to the system what malloc has kept of freed memory, in the arenas of all threads. For a
/// process that needed much at its start. Does nothing on C libraries other than glibc.
inline void return_freed_memory() noexcept {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace lockstep::inline internal
