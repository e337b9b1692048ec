#pragma once

#include <cstddef>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// A memfd of `bytes` zeros for other processes to map. None of them can resize it, so no access to
/// a mapping ends a process by SIGBUS: all pages are allocated here. Empty, with errno: the kernel
/// refuses, or has no memory. Allocates nothing on the heap, so a forked child may call it.
UniqueFd make_sealed_memory(const char* name, size_t bytes);

/// Whether `memory`, from another process, is such a memfd of at least `bytes`.
bool is_sealed_memory(int memory, size_t bytes);

}  // namespace lockstep::inline internal
