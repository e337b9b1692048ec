#pragma once
// Tensors in memory that peers on this host can read: collectives on them need no copy.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "lockstep/process_group.h"

namespace lockstep {

/// A tensor of `sizes`, `offset` bytes into `buffer`, that keeps the buffer alive. It is an
/// independent tensor, not a view of another one, so that it can be a gradient (detach_() works).
/// `strides` (in elements) must be dense and without overlap; empty: contiguous.
/// Errors: kInvalidArgument if it would end after the buffer, or if `offset` is negative or no
/// multiple of the element size.
at::Tensor from_shared(std::shared_ptr<SharedBuffer> buffer, int64_t offset, at::IntArrayRef sizes,
                       at::ScalarType dtype, at::IntArrayRef strides = {});

}  // namespace lockstep
