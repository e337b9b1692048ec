#pragma once
// Collectives on tensors. Semantics, order of sums and errors are those of ProcessGroup
// (lockstep/process_group.h); these functions add only what a tensor knows about itself.
//
// Every tensor must be contiguous, strided, resolved (conj, neg), of a type that DType has,
// and of the same number of elements and type on all ranks (unless the text says so). Otherwise:
// kInvalidArgument naming the operation, the shapes and what is allowed; nothing was sent. Leave
// the tensors unchanged until Work::wait() has returned. They live until the collective is over,
// also where the caller lets them and the Work go: x.contiguous() may be given.
//
// Tensors may lie on any device, on each rank on another: those that are not on the CPU are copied
// to host memory before the call returns and back within Work::wait(): without
// wait(), of a Work that is dropped, they keep their values. But those on
// ProcessGroup::device() ("c10d:nccl") stay there; then a call's tensors lie there on all ranks.

#include <ATen/core/Tensor.h>

#include <span>

#include "lockstep/process_group.h"

namespace lockstep {

/// Replaces `tensor`, on every rank, by the element-wise reduction over all ranks.
Work all_reduce(ProcessGroup& group, const at::Tensor& tensor, ReduceOp op,
                const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// Replaces `tensor` by that of `root`.
Work broadcast(ProcessGroup& group, const at::Tensor& tensor, int root,
               const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// part: n elements; out: size() * n elements, in rank order. With a shape (k, ...) of `part`,
/// an `out` of shape (size() * k, ...) has rank r's rows at [r * k, (r + 1) * k).
Work all_gather(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// in: size() * n elements, one part a rank; out: n elements, the reduction of part rank().
Work reduce_scatter(ProcessGroup& group, const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                    const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// Replaces root's `tensor` by the reduction over all ranks; the others' stay as they are.
Work reduce(ProcessGroup& group, const at::Tensor& tensor, ReduceOp op, int root,
            const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// part: n elements; out, on root only (else it may be undefined): size() * n, in rank order.
Work gather(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out, int root,
            const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// in, on root only (else it may be undefined): size() * n elements; part: n, this rank's.
Work scatter(ProcessGroup& group, const at::Tensor& in, const at::Tensor& part, int root,
             const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// in, out: size() * n elements each; part r of `in` goes to rank r, part r of `out` comes from it.
Work all_to_all(ProcessGroup& group, const at::Tensor& in, const at::Tensor& out,
                const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// Tensors of shape (k_r, ...) with another k_r on each rank r, equal in the rest of the shape.
/// out: (sum of rows, ...); rows[r] = k_r, the same list on every rank. Rank 0's rows come first.
Work all_gatherv(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                 std::span<const int64_t> rows, const CollectiveOptions& options = {},
                 CallSite site = CallSite::here());

/// send_rows[r] rows of `in` go to rank r, receive_rows[r] rows of `out` come from it, in rank
/// order; a row is all but the first dimension, equal in both.
Work all_to_allv(ProcessGroup& group, const at::Tensor& in, std::span<const int64_t> send_rows,
                 const at::Tensor& out, std::span<const int64_t> receive_rows,
                 const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// all_reduce of each tensor, in one call. All of one type. See
/// ProcessGroup::all_reduce_coalesced().
Work all_reduce_coalesced(ProcessGroup& group, std::span<const at::Tensor> tensors, ReduceOp op,
                          const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// all_gather of parts[i] into outs[i], and reduce_scatter of ins[i] into outs[i], for every i in
/// one call. As many in both lists, all of one type. See ProcessGroup::all_gather_coalesced().
Work all_gather_coalesced(ProcessGroup& group, std::span<const at::Tensor> parts,
                          std::span<const at::Tensor> outs, const CollectiveOptions& options = {},
                          CallSite site = CallSite::here());
Work reduce_scatter_coalesced(ProcessGroup& group, std::span<const at::Tensor> ins,
                              std::span<const at::Tensor> outs, ReduceOp op,
                              const CollectiveOptions& options = {},
                              CallSite site = CallSite::here());

/// Point to point; both ends give the same element count, type and tag.
Work send(ProcessGroup& group, const at::Tensor& tensor, int destination, int tag = 0,
          CallSite site = CallSite::here());
Work recv(ProcessGroup& group, const at::Tensor& tensor, int source, int tag = 0,
          CallSite site = CallSite::here());

}  // namespace lockstep
