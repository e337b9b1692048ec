#pragma once
// Tensors in memory that the peers on this host can read: collectives on them need no copy.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "lockstep/process_group.h"

namespace lockstep {

/// A tensor of `sizes` that lies `offset` bytes into `buffer` and keeps it alive. It is a tensor of
/// its own, no view of another one, so that it may stand as a gradient (detach_() works).
/// `strides` (in elements) must be dense and without overlap; empty: contiguous.
/// Errors: kInvalidArgument when it would end after the buffer, or when `offset` is negative or no
/// multiple of the element size.
at::Tensor from_shared(std::shared_ptr<SharedBuffer> buffer, int64_t offset, at::IntArrayRef sizes,
                       at::ScalarType dtype, at::IntArrayRef strides = {});

}  // namespace lockstep
