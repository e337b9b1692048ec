#pragma once
// Collectives on tensors of other devices than the CPU: they run on copies in host memory.

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "lockstep/comm/process_group.h"

namespace lockstep {

/// Host memory for the tensors of one collective. That of a tensor on the CPU is its own, and
/// nothing is copied; any other has a copy, page-locked where the tensor is CUDA's: its values are
/// there when in() or in_out() returns, and what the collective left there comes back to the tensor
/// within Work::wait(). Both copies go through the stream that is current when they are made, and
/// are over when the call returns.
///
///   Staging staging;
///   void* data = staging.in_out(tensor);
///   return std::move(staging).finish(group.all_reduce(data, ...));
///
/// Errors: those of libtorch's copy.
class Staging {
 public:
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
};

}  // namespace lockstep
