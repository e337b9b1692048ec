#pragma once
// Collectives on tensors. Semantics, order of sums and errors are those of ProcessGroup
// (lockstep/comm/process_group.h); these functions add only what a tensor knows about itself.
//
// Every tensor must be contiguous, strided and on the CPU, of a type that to_dtype() maps, and of
// the same number of elements and type on every rank. Otherwise: kInvalidArgument naming the
// operation, the shapes and what is allowed; nothing was sent. Keep the tensors, unchanged, until
// Work::wait() has returned: the Work does not hold them.

#include <ATen/core/Tensor.h>

#include "lockstep/comm/process_group.h"

namespace lockstep {

/// Replaces `tensor`, on every rank, by the element-wise reduction over all ranks.
Work all_reduce(ProcessGroup& group, const at::Tensor& tensor, ReduceOp op,
                const CollectiveOptions& options = {});

/// Replaces `tensor` by that of `root`.
Work broadcast(ProcessGroup& group, const at::Tensor& tensor, int root,
               const CollectiveOptions& options = {});

/// part: n elements; out: size() * n elements, in rank order. With a shape (k, ...) of `part`,
/// an `out` of shape (size() * k, ...) has rank r's rows at [r * k, (r + 1) * k).
Work all_gather(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                const CollectiveOptions& options = {});

/// in: size() * n elements, one part a rank; out: n elements, the reduction of part rank().
Work reduce_scatter(ProcessGroup& group, const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                    const CollectiveOptions& options = {});

/// Point to point; both ends give the same element count, type and tag.
Work send(ProcessGroup& group, const at::Tensor& tensor, int destination, int tag = 0);
Work recv(ProcessGroup& group, const at::Tensor& tensor, int source, int tag = 0);

}  // namespace lockstep
