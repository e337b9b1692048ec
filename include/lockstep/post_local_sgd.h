#pragma once
// Averages gradients over all ranks at first, later only among near ranks, and then weights
// periodically.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/comm_hook.h"
#include "lockstep/process_group.h"

namespace lockstep {

struct PostLocalSgdOptions {
  int64_t start_step = 100;  ///< Steps with gradients averaged over all ranks; at least 1.
  int64_t period = 4;        ///< Steps between two averages of weights after that; at least 1.

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

/// Post-local SGD, for slow links between hosts. After `start_step` steps it averages gradients
/// only among the ranks of `near` (the ranks of a host, or one rank for no average). So ranks drift
/// apart, and every `period` steps their weights are averaged over all.
///
///   PostLocalSgd local(group, group.subgroup({group.rank()}), {.start_step = 1000});
///   auto model = DistributedDataParallel(net, group,
///                                        {.broadcast_buffers = false, .comm_hook = local.hook()});
///   ... backward(); optimizer.step(); local.after_step(model.parameters());
///
/// Between two averages weights differ from rank to rank, on purpose: call average() before a
/// checkpoint or an evaluation. Each rank has its own optimizer state. It also keeps its own
/// running statistics, or, with broadcast_buffers, takes rank 0's in each step. Pass buffers of
/// floating types to average() too if they matter.
/// Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
class PostLocalSgd {
 public:
  /// `near`: a group that contains this rank; the groups of all ranks together cover `all`.
  /// Errors: kInvalidArgument.
  PostLocalSgd(ProcessGroup all, ProcessGroup near, const PostLocalSgdOptions& options = {});

  /// The hook for this rank's model; it counts the steps.
  std::shared_ptr<CommHook> hook() const;

  /// Call after each optimizer step. Collective over all ranks when it averages: every `period`
  /// steps, counted from start_step. Returns whether it averaged.
  bool after_step(const std::vector<at::Tensor>& parameters);
  /// Collective: gives all ranks the mean of their values. One all_reduce_coalesced per type.
  void average(const std::vector<at::Tensor>& tensors);

 private:
  class Hook;
  ProcessGroup all_;
  PostLocalSgdOptions options_;
  std::shared_ptr<Hook> hook_;
};

}  // namespace lockstep
