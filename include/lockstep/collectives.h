#pragma once
// These functions run the collectives of a ProcessGroup on tensors, whose counts and types they
// take. Semantics, order of sums and errors are those of ProcessGroup (lockstep/process_group.h).
//
// Use:
//   auto sum = torch::full({4}, group.rank() + 1.0);
//   lockstep::all_reduce(group, sum, lockstep::ReduceOp::kSum).wait();  // 3, 3, 3, 3 on two ranks
//   auto all = torch::empty({group.size() * 4});
//   auto work = lockstep::all_gather(group, sum, all, {.async = true});
//   const auto meanwhile = net->forward(images);
//   work.wait();  // from here on `all` has the values
//
// Every tensor must be contiguous, strided, resolved (conj, neg) and of a type in DType. Its number
// of elements and its type are the same on all ranks, unless a function states otherwise.
// Otherwise: kInvalidArgument naming the operation, the shapes and the allowed ones; nothing was
// sent. Leave the tensors unchanged until Work::wait() has returned. The collective keeps its
// tensors alive until it is over, even if the caller drops them and the Work: x.contiguous() is a
// valid argument.
//
// Tensors may lie on any device, also on different ones on different ranks. Tensors outside the CPU
// are copied to host memory and back. Tensors on ProcessGroup::device() ("c10d:nccl", "hccl") stay
// there; all ranks must then pass tensors on that device. In both cases a collective begins after
// the work so far of the caller's current stream. No call waits for the device. Work::wait()
// returns when the rest is the device's: later work of the current stream sees the result, as with
// PyTorch's NCCL. Only send() and recv() wait for their copies.
//
// Threads: one thread at a time runs collectives of a group; any may send, receive, or wait for a
// Work. device_of() and from_shared() are not collective, and any thread may call them.
// Cost: that of ProcessGroup's operation. A tensor on the CPU is not copied; another one is copied
// to the host, back, or both. Tensors that stay on the group's device are not copied, but for the
// coalesced operations, send(), recv() and kPremulSum. There all_reduce_coalesced() copies within
// the device, the others by the host.
// Errors: kInvalidArgument for tensors as above, at the call. Others come from Work::wait().

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "lockstep/process_group.h"

namespace lockstep {

/// ProcessGroup::device(), as libtorch's type; nothing: the group uses no device's memory in place.
std::optional<c10::Device> device_of(const ProcessGroup& group);

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

/// Replaces root's `tensor` by the reduction over all ranks; the other tensors keep their values.
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

/// Tensors of shape (k_r, ...): k_r may differ between ranks, the rest of the shape is equal.
/// out: (sum of rows, ...), rank 0's rows first; rows[r] = k_r, the same list on every rank.
Work all_gatherv(ProcessGroup& group, const at::Tensor& part, const at::Tensor& out,
                 std::span<const int64_t> rows, const CollectiveOptions& options = {},
                 CallSite site = CallSite::here());

/// send_rows[r] rows of `in` go to rank r, and receive_rows[r] rows of `out` come from it, in rank
/// order. A row spans all dimensions but the first; its shape is equal in both.
Work all_to_allv(ProcessGroup& group, const at::Tensor& in, std::span<const int64_t> send_rows,
                 const at::Tensor& out, std::span<const int64_t> receive_rows,
                 const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// all_reduce of each tensor, in one call. All have one type. See
/// ProcessGroup::all_reduce_coalesced().
Work all_reduce_coalesced(ProcessGroup& group, std::span<const at::Tensor> tensors, ReduceOp op,
                          const CollectiveOptions& options = {}, CallSite site = CallSite::here());

/// all_gather of parts[i] into outs[i], or reduce_scatter of ins[i] into outs[i], for every i in
/// one call. Both lists have the same length, all tensors one type. See
/// ProcessGroup::all_gather_coalesced().
Work all_gather_coalesced(ProcessGroup& group, std::span<const at::Tensor> parts,
                          std::span<const at::Tensor> outs, const CollectiveOptions& options = {},
                          CallSite site = CallSite::here());
Work reduce_scatter_coalesced(ProcessGroup& group, std::span<const at::Tensor> ins,
                              std::span<const at::Tensor> outs, ReduceOp op,
                              const CollectiveOptions& options = {},
                              CallSite site = CallSite::here());

/// Point to point; sender and receiver give the same element count, type and tag.
Work send(ProcessGroup& group, const at::Tensor& tensor, int destination, int tag = 0,
          CallSite site = CallSite::here());
Work recv(ProcessGroup& group, const at::Tensor& tensor, int source, int tag = 0,
          CallSite site = CallSite::here());

// Tensors in memory that peers on this host can read: collectives on them need no copy.

/// A tensor of `sizes`, `offset` bytes into `buffer`, that keeps the buffer alive. It is an
/// independent tensor, not a view of another one, so that it can be a gradient (detach_() works).
/// `strides` (in elements) must be dense and without overlap; empty: contiguous.
/// Errors: kInvalidArgument if it would end after the buffer, or if `offset` is negative or no
/// multiple of the element size.
at::Tensor from_shared(std::shared_ptr<SharedBuffer> buffer, int64_t offset, at::IntArrayRef sizes,
                       at::ScalarType dtype, at::IntArrayRef strides = {});

}  // namespace lockstep
