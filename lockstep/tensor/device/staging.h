#pragma once
// Collectives on tensors of other devices than the CPU: in place if the group supports that, else
// on copies in host memory.

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/collectives.h"
#include "lockstep/process_group.h"
#include "lockstep/tensor/device/stream_order.h"

namespace lockstep::inline internal {

/// True if `group` can reduce or move the defined ones of `tensors` in place. The same on all ranks
/// if either all ranks' tensors are on their devices (ProcessGroup::device()), or none.
bool stay_on_device(const ProcessGroup& group, std::span<const at::Tensor> tensors,
                    ReduceOp op = ReduceOp::kSum);

/// Returns when the work so far of this thread's current stream of `device` is done; at once on the
/// CPU.
void await_stream(c10::Device device);

/// Host memory for the tensors of one collective, which live until it is over. A tensor on the CPU
/// uses its own memory, and nothing is copied. Any other has a copy (HostCopies). Nothing is copied
/// either if the tensors can stay on their device. options() pass the order with the device's work
/// to the collective:
///
///   Staging staging(group, {tensor}, options);
///   void* data = staging.in_out(tensor);
///   return std::move(staging).finish(group.all_reduce(data, ..., staging.options()));
///
/// No call waits for the device. Within Work::wait() the current stream, and not the host, waits
/// for the result. If the Work is dropped, the result arrives all the same.
///
/// Without a group, for operations without options, copies go through the current stream. They are
/// complete when in() returns, or within Work::wait().
///
/// Errors: those of libtorch's copy.
class Staging {
 public:
  Staging() = default;
  Staging(const ProcessGroup& group, std::initializer_list<at::Tensor> tensors,
          const CollectiveOptions& options, ReduceOp op = ReduceOp::kSum);
  /// For coalesced operations, which always go through the host.
  explicit Staging(const CollectiveOptions& options) : options_(options), has_order_(true) {}
  const CollectiveOptions& options() const { return options_; }

  void* in(const at::Tensor& tensor) { return host_of(tensor, true, false); }
  void* out(const at::Tensor& tensor) { return host_of(tensor, false, true); }
  void* in_out(const at::Tensor& tensor) { return host_of(tensor, true, true); }

  /// Once, with the collective that uses the memory.
  Work finish(Work work) &&;

 private:
  struct Copy {
    at::Tensor tensor;
    at::Tensor host;
    bool comes_back;
  };
  void* host_of(const at::Tensor& tensor, bool filled, bool comes_back);

  std::vector<Copy> copies_;
  c10::SmallVector<at::Tensor, 2> in_place_;  ///< Tensors that the collective uses directly.
  CollectiveOptions options_;
  const bool has_order_ = false;  ///< The collective takes options().
  std::shared_ptr<HostCopies> ordered_copies_;
};

}  // namespace lockstep::inline internal
