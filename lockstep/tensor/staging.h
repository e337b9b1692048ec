#pragma once
// Collectives on tensors of other devices than the CPU: where they lie, if the group can, else on
// copies in host memory.

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/process_group.h"

namespace lockstep {

/// Can `group` reduce or move the defined ones of `tensors` where they lie? The same on all ranks
/// if it is the same for all whether their tensors lie on their devices (ProcessGroup::device()).
bool stay_on_device(const ProcessGroup& group, std::span<const at::Tensor> tensors,
                    ReduceOp op = ReduceOp::kSum);

/// Returns when what this thread's current stream of `device` had to do is done; at once on the
/// CPU.
void await_stream(c10::Device device);

/// Host memory for the tensors of one collective, which live until it is over. That of a tensor on
/// the CPU is its own, and nothing is copied; any other has a copy, page-locked where the tensor is
/// CUDA's: its values are there when in() or in_out() returns, and what the collective left there
/// comes back to the tensor within Work::wait(), never where the Work is dropped without. Both
/// copies go through the stream that is current when they are made, and are over when the call
/// returns.
///
///   Staging staging;
///   void* data = staging.in_out(tensor);
///   return std::move(staging).finish(group.all_reduce(data, ...));
///
/// With the group's name nothing is copied where the tensors can stay; options() then say so to
/// the collective. What the current stream had yet to do with them is done when the constructor
/// returns.
///
/// Errors: those of libtorch's copy.
class Staging {
 public:
  Staging() = default;
  Staging(const ProcessGroup& group, std::initializer_list<at::Tensor> tensors,
          const CollectiveOptions& options, ReduceOp op = ReduceOp::kSum);
  const CollectiveOptions& options() const { return options_; }

  void* in(const at::Tensor& tensor) { return host_of(tensor, true, false); }
  void* out(const at::Tensor& tensor) { return host_of(tensor, false, true); }
  void* in_out(const at::Tensor& tensor) { return host_of(tensor, true, true); }

  /// Once, with the collective that was given the memory.
  Work finish(Work work) &&;

 private:
  struct Copy {
    at::Tensor tensor;
    at::Tensor host;
    bool comes_back;
  };
  void* host_of(const at::Tensor& tensor, bool filled, bool comes_back);

  std::vector<Copy> copies_;
  c10::SmallVector<at::Tensor, 2> in_place_;  ///< Those that the collective itself reads or writes.
  CollectiveOptions options_;
};

}  // namespace lockstep
