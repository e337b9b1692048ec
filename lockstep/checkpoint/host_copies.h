#pragma once
// Copies of tensors in fresh memory of the host, for a writer that works while training goes on.

#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// A copy of each tensor on the CPU, with its strides where it is dense. Large ones share one
/// mapping with huge pages, as far as the kernel has them. Training waits for this copy, and to
/// clear small pages one by one takes longer than to fill them.
/// Errors: std::bad_alloc, and libtorch's.
TensorMap host_copies(const TensorMap& tensors);

}  // namespace lockstep::inline internal
