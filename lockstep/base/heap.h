#pragma once

#include <malloc.h>

namespace lockstep {

/// Makes malloc keep freed memory for the next use, up to 256 MiB, instead of giving it back to the
/// system at once: for a process that makes images or tensors of megabytes over and over, which
/// otherwise spends as long on page faults as on the pixels. For the whole process; nothing on C
/// libraries other than glibc.
inline void keep_freed_memory() noexcept {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the highest it takes; above, each has its own mapping
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace lockstep
