#pragma once
// Making the ranks' modules equal, and telling when they cannot be.

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/gradient_memory.h"
#include "lockstep/parallel/subtree_reduction.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/process_group.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// All parameters (or buffers) of the module and its children under their dotted names; a tensor
/// that is registered twice appears once, under its first name.
std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
std::vector<NamedTensor> buffers_of(const torch::nn::Module& module);

/// "parameter 'fc.weight' Float [10, 64] strides [64, 1]".
std::string describe(const std::string& what, const NamedTensor& tensor);

/// Collective. Throws kMismatch, on every rank, when some rank's list differs from rank 0's.
/// Descriptions are of one line.
void check_same_on_all_ranks(ProcessGroup& group, const std::vector<std::string>& descriptions,
                             CallSite site = CallSite::here());

/// Up to eight names, quoted.
std::string name_list(const std::vector<std::string>& names);

/// Throws kInvalidArgument: a backward pass brought these parameters no gradient. Names up to
/// eight. `virtual_ranks`: whether the model has any, and so no unused parameters.
[[noreturn]] void throw_without_gradient(const std::vector<std::string>& names, bool virtual_ranks);

/// Collective: the values of rank `root` on every rank. Cost: one broadcast a tensor.
void broadcast_values(ProcessGroup& group, const std::vector<NamedTensor>& tensors, int root = 0);

/// Gives every rank the buffers of one, again and again: one broadcast for all of them.
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

/// Averages buffers over all virtual ranks of all ranks, again and again.
class BufferAverage {
 public:
  /// Collective.
  BufferAverage(ProcessGroup group, const VirtualRankRange& range,
                const std::vector<NamedTensor>& buffers);
  /// Collective. `sums`: of each of this rank's owned_subtrees(), the sums of all buffers. Floating
  /// buffers become the sum over all virtual ranks divided by their number. Others become those of
  /// rank 0.
  void run(std::span<const std::span<const at::Tensor>> sums);

 private:
  void lay_out(const std::vector<NamedTensor>& buffers);
  void sum(size_t layout);
  char* memory_of(size_t subtree) const;

  ProcessGroup group_;
  int virtual_ranks_;
  std::vector<NamedTensor> averaged_;
  std::vector<size_t> index_of_;       ///< By averaged buffer: its index among all buffers.
  std::vector<BucketLayout> layouts_;  ///< One an element type.
  std::vector<DType> types_;           ///< Theirs.
  std::shared_ptr<SharedBuffer> memory_;
  std::vector<at::Tensor> earlier_;  ///< Memory of the same layout for subtrees but the last.
  std::vector<std::vector<at::Tensor>> places_;  ///< By subtree, then by averaged buffer.
  std::unique_ptr<SubtreeReduction> reduction_;  ///< Null where ranks_add_as_tree().
  std::unique_ptr<BufferBroadcast> others_;
};

}  // namespace lockstep
