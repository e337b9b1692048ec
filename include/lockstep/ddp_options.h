#pragma once
// DdpOptions and JoinOptions choose how DistributedDataParallel averages gradients. StepTimings has
// the time that it took.
//
// Use:
//   const lockstep::DdpOptions options = {.bucket_cap_mb = 50, .measure_wait = true};
//   auto model = lockstep::DistributedDataParallel(net, group, options);
//   loss_of(model.forward(images), labels).backward();
//   const lockstep::StepTimings times = model.timings();
//   std::printf("waited %.3f ms for others, of which the slowest rank took %.3f ms\n",
//               times.comm_exposed, times.slowest_wait);
//
// Threads: these are values, each for one thread at a time.
// Cost: an option that has a price names it, or the place that does.
// Errors: the model's constructor throws those of validate(), and kMismatch if ranks give other
// DdpOptions.

#include <functional>
#include <memory>

#include "lockstep/comm_hook.h"

namespace lockstep {

// The parts of the time of a data parallel training step.

/// For the last step with averaged gradients, on this rank; times in milliseconds of wall time.
struct StepTimings {
  double forward = 0;  ///< forward(), with the broadcast of buffers.
  /// From the moment backward() reached the model's output to its end, comm_exposed included. If
  /// forward() returned a user-defined type, it starts at the first gradient.
  double backward = 0;
  /// Part of backward in which communication ran while gradients were computed. It is sampled
  /// whenever a gradient gets ready, so the end of a bucket is noticed up to one gradient late.
  double comm_hidden = 0;
  /// Part of backward, at its end, that only waited for communication and slower ranks.
  double comm_exposed = 0;
  /// How much earlier than the slowest rank this one had all its gradients. Both times are measured
  /// from the end of the previous step. 0 on the slowest; 0 everywhere unless
  /// DdpOptions::measure_wait.
  double slowest_wait = 0;
  /// Gradients of at least 1 MiB that were copied, as they were outside the averaged memory. Either
  /// the program owns their .grad, or another object held that memory.
  int copied = 0;
  /// Part of forward that waited for and broadcast rank 0's buffers.
  double buffers = 0;
  /// After backward, with virtual ranks: the wait for the buffers of all ranks and their average.
  double buffer_average = 0;

  StepTimings& operator+=(const StepTimings& other);
};

/// lockstep::DistributedDataParallel(net, group, {.bucket_cap_mb = 50});
struct DdpOptions {
  /// Upper bound of a bucket in MiB, greater than 0, at most 2^20. Larger buckets make fewer
  /// messages; smaller ones start earlier. The first bucket holds at most 1 MiB.
  double bucket_cap_mb = 25;
  /// Whether forward() in training copies rank 0's buffers to every rank. Must be true with
  /// `virtual_ranks`, which average buffers instead. Cost: one broadcast of all buffers, and a copy
  /// of them.
  bool broadcast_buffers = true;
  /// Parts of the global batch, at least as many as ranks; see
  /// DistributedDataParallel::for_each_virtual_rank(), and that class for the cost. 0: one per
  /// rank. Excludes `comm_hook`, `find_unused_parameters` and `static_graph`, and parameters on
  /// another device than the CPU. Equal bits need ProcessGroup's one order of sums.
  int virtual_ranks = 0;
  /// Whether the loss may leave parameters out, different ones in each step and on each rank. A
  /// parameter that no rank used keeps its .grad. A parameter that some ranks used gets the average
  /// over all ranks; the others count as zero. Every rank's backward() must reach at least one
  /// parameter. A backward() that reaches none (as autograd::grad() of an input) averages nothing,
  /// and the others wait for this rank until the group's timeout. Cost: one reduction of one byte
  /// per parameter.
  bool find_unused_parameters = false;
  /// Promises that in every step the same parameters get as many gradients as in the first step, on
  /// all ranks. The loss may then leave parameters out at no cost. A parameter may also get several
  /// gradients in one backward(), even in a nested one, as when activations are recomputed. With
  /// nested ones visit_tensors() must find the tensors that forward() returns.
  /// It looks into tuples, optionals and containers, but not into a user-defined struct. Excludes
  /// find_unused_parameters. Cost: in the first step one reduction of 8 bytes per parameter, and no
  /// overlap of communication with backward().
  bool static_graph = false;
  /// The method of averaging gradients; null: exact. One object per model and rank. Its cost stands
  /// in comm_hook.h; see make_comm_hook().
  std::shared_ptr<CommHook> comm_hook = nullptr;
  /// Whether to measure StepTimings::slowest_wait: one reduction of 8 bytes per step.
  bool measure_wait = false;

  /// Errors: kInvalidArgument naming the fields and their values.
  void validate() const;
};

/// model.join(body, {.divide_by_active = true});
struct JoinOptions {
  /// Whether averages divide by the number of ranks that still have data. By default they divide by
  /// the number of all ranks, so that every sample has the same weight to the end.
  bool divide_by_active = false;
  /// Whether every rank fails, naming the rank without data, instead of continuing.
  bool throw_when_uneven = false;
  /// Called on a rank that ran out of data, after each step of the others, with their average in
  /// .grad, in the thread of join(). An optimizer step here keeps the optimizer's state equal on
  /// all ranks, too. With find_unused_parameters a .grad that the others keep from before is
  /// averaged for it as well.
  std::function<void()> on_shadow_step = nullptr;
};

}  // namespace lockstep
