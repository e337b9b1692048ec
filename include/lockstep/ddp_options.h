#pragma once
// Choices of DistributedDataParallel and of its join().

#include <functional>
#include <memory>

#include "lockstep/comm_hook.h"

namespace lockstep {

/// lockstep::DistributedDataParallel(net, group, {.bucket_cap_mb = 50});
struct DdpOptions {
  /// Bound of a bucket in MiB, greater than 0. Larger: fewer messages; smaller: they start earlier.
  /// The first bucket holds at most 1 MiB.
  double bucket_cap_mb = 25;
  /// Whether forward() in training gives every rank the buffers of rank 0. Must be true with
  /// `virtual_ranks`, which average buffers instead.
  bool broadcast_buffers = true;
  /// Parts of the global batch, at least as many as ranks; see
  /// DistributedDataParallel::for_each_virtual_rank(). 0: one a rank.
  int virtual_ranks = 0;
  /// Whether parameters may be left out of the loss, other ones in each step and on each rank. One
  /// that no rank used keeps its .grad as it is; one that some used gets the average over all, the
  /// others counting as zero. Every rank's backward() must reach at least one parameter: by what
  /// reaches none (as autograd::grad() of an input) nothing is averaged, and the others wait for
  /// this rank until the group's timeout. Cost: one reduction of a byte a parameter.
  bool find_unused_parameters = false;
  /// The promise that in every step the same parameters get as many gradients as in the first, on
  /// all ranks. Parameters may then be left out, at no cost, or get several gradients in one
  /// backward() (one within another, as when activations are computed anew). Where one is within
  /// another, forward() must return its tensors so that visit_tensors() (output_tensors.h) finds
  /// them: alone, or in tuples, optionals and containers, but not in a struct of one's own. Not
  /// together with find_unused_parameters.
  bool static_graph = false;
  /// How gradients are averaged; null: exactly. One object a model and rank. See make_comm_hook().
  std::shared_ptr<CommHook> comm_hook = nullptr;
  /// Whether StepTimings::slowest_wait is measured: one reduction of 8 bytes a step.
  bool measure_wait = false;

  /// Errors: kInvalidArgument naming the fields and their values.
  void validate() const;
};

/// model.join(body, {.divide_by_active = true});
struct JoinOptions {
  /// Whether averages divide by the number of ranks that still have data. Otherwise by that of all
  /// ranks, so that a sample counts the same to the end.
  bool divide_by_active = false;
  /// Whether every rank fails, naming the one without data, instead of going on.
  bool throw_when_uneven = false;
  /// Called on a rank that ran out, after each step of the others, with their average in .grad:
  /// an optimizer step here keeps the optimizer's state equal on all ranks, too.
  std::function<void()> on_shadow_step = nullptr;
};

}  // namespace lockstep
