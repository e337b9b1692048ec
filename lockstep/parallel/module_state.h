#pragma once
// Makes the ranks' modules equal, and reports differences that prevent it.

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/gradient_memory.h"
#include "lockstep/parallel/subtree_reduction.h"
#include "lockstep/process_group.h"

namespace torch::nn {
class Module;
}

namespace lockstep::inline internal {

/// All parameters (or buffers) of the module and its children under their dotted names. A tensor
/// that is registered twice appears once, under its first name.
std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
std::vector<NamedTensor> buffers_of(const torch::nn::Module& module);

/// "parameter 'fc.weight' Float [10, 64] strides [64, 1]", or "not dense" in place of the strides.
std::string describe(const std::string& what, const NamedTensor& tensor);

/// Collective. Throws kMismatch, on every rank, if some rank's list differs from rank 0's. Each
/// description has one line.
void check_same_on_all_ranks(ProcessGroup& group, const std::vector<std::string>& descriptions,
                             CallSite site = CallSite::here());

/// Throws kInvalidArgument, which names the tensor, for one whose values cannot be sent or
/// replaced: it is sparse, or several of its elements are one in memory.
void check_copyable(const std::vector<NamedTensor>& tensors);

/// Up to eight names, quoted.
std::string name_list(const std::vector<std::string>& names);

/// Throws kInvalidArgument if the parameter's gradient is sparse.
void refuse_sparse_gradient(const NamedTensor& parameter);

/// Throws kInvalidArgument: these parameters got no gradient in a backward pass. Names up to eight.
/// `virtual_ranks`: true if the model has any, and so no unused parameters.
[[noreturn]] void throw_without_gradient(const std::vector<std::string>& names, bool virtual_ranks);

/// Throws kInvalidArgument if the parameter's gradient has a graph, which an average would drop.
void refuse_gradient_with_graph(const NamedTensor& parameter);

/// Collective: the values of rank `root` on every rank. Cost: one broadcast per tensor. Errors:
/// also those of check_copyable(), before any broadcast.
void broadcast_values(ProcessGroup& group, const std::vector<NamedTensor>& tensors, int root = 0);

/// Broadcasts one rank's buffers to all ranks, repeatedly: one broadcast for all buffers.
class BufferBroadcast {
 public:
  /// Collective.
  BufferBroadcast(ProcessGroup group, std::vector<NamedTensor> buffers);
  /// Collective.
  void run(int root = 0);

 private:
  ProcessGroup group_;
  std::vector<NamedTensor> buffers_;
  std::shared_ptr<SharedBuffer> memory_;
  std::vector<at::Tensor> places_;  ///< By buffer, in memory_.
};

/// Averages buffers over all virtual ranks of all ranks, repeatedly.
class BufferAverage {
 public:
  /// Collective.
  BufferAverage(ProcessGroup group, const VirtualRankRange& range,
                const std::vector<NamedTensor>& buffers);
  /// Collective. `sums`: for each of this rank's owned_subtrees(), the sums of all buffers.
  /// Floating buffers become the sum over all virtual ranks divided by their number. Other buffers
  /// become those of rank 0.
  void run(std::span<const std::span<const at::Tensor>> sums);

 private:
  void lay_out(const std::vector<NamedTensor>& buffers);
  void sum(size_t layout);
  char* memory_of(size_t subtree) const;

  ProcessGroup group_;
  int virtual_ranks_;
  std::vector<NamedTensor> averaged_;
  std::vector<size_t> index_of_;       ///< By averaged buffer: its index among all buffers.
  std::vector<BucketLayout> layouts_;  ///< One per element type.
  std::vector<DType> types_;           ///< The element types.
  std::shared_ptr<SharedBuffer> memory_;
  std::vector<at::Tensor> earlier_;  ///< Memory of the same layout for all subtrees but the last.
  std::vector<std::vector<at::Tensor>> places_;  ///< By subtree, then by averaged buffer.
  std::unique_ptr<SubtreeReduction> reduction_;  ///< Null if ranks_add_as_tree().
  std::unique_ptr<BufferBroadcast> others_;
};

}  // namespace lockstep::inline internal
