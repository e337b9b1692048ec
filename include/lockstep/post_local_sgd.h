#pragma once
// Average gradients at first, later only among near ranks, and weights now and then.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/comm_hook.h"
#include "lockstep/process_group.h"

namespace lockstep {

struct PostLocalSgdOptions {
  int64_t start_step = 100;  ///< Steps whose gradients are averaged over all ranks; at least 1.
  int64_t period = 4;        ///< From then on weights are averaged after so many steps; at least 1.

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

/// Post-local SGD, for links that are slow between hosts: after `start_step` steps gradients are
/// averaged among the ranks of `near` only (those of a host, or of one rank: not at all), so ranks
/// drift apart, and every `period` steps their weights are averaged over all.
///
///   PostLocalSgd local(group, group.subgroup({group.rank()}), {.start_step = 1000});
///   auto model = DistributedDataParallel(net, group,
///                                        {.broadcast_buffers = false, .comm_hook = local.hook()});
///   ... backward(); optimizer.step(); local.after_step(model.parameters());
///
/// Between two averages weights differ from rank to rank, on purpose: average() before a checkpoint
/// or an evaluation. The state of the optimizer is each rank's own, and so are buffers: every rank
/// keeps its running statistics, or, with broadcast_buffers, takes rank 0's in each step. Give
/// average() those of floating types too where they count.
/// Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
class PostLocalSgd {
 public:
  /// `near`: a group to which this rank belongs; the groups of all ranks together cover `all`.
  /// Errors: kInvalidArgument.
  PostLocalSgd(ProcessGroup all, ProcessGroup near, const PostLocalSgdOptions& options = {});

  /// For the model of this rank; counts its steps.
  std::shared_ptr<CommHook> hook() const;

  /// After each optimizer step. Collective over all ranks when it averages: every `period` steps,
  /// counted from start_step. Returns whether it did.
  bool after_step(const std::vector<at::Tensor>& parameters);
  /// Collective: the mean of the ranks' values, on all of them. One all_reduce_coalesced a type.
  void average(const std::vector<at::Tensor>& tensors);

 private:
  class Hook;
  ProcessGroup all_;
  PostLocalSgdOptions options_;
  std::shared_ptr<Hook> hook_;
};

}  // namespace lockstep
