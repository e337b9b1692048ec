#pragma once
// Where the time of a data parallel training step goes.

namespace lockstep {

/// Of the last step whose gradients were averaged, on this rank; times in milliseconds of wall
/// time.
struct StepTimings {
  double forward = 0;  ///< forward(), with the broadcast of buffers.
  /// From where backward() reached the model's output (or, when forward() returned a type of the
  /// user's, from the first gradient) to its end, comm_exposed included.
  double backward = 0;
  /// Part of backward in which communication was under way while gradients were computed. Observed
  /// whenever a gradient gets ready, so the end of a bucket is noticed up to one gradient late.
  double comm_hidden = 0;
  /// Part of backward, at its end, that only waited for communication and slower ranks.
  double comm_exposed = 0;
  /// How much earlier than the slowest rank this one had all its gradients, both counted from the
  /// end of the step before. 0 on the slowest; 0 everywhere unless DdpOptions::measure_wait.
  double slowest_wait = 0;
  /// Gradients of at least 1 MiB that were copied, because they did not come out in the memory in
  /// which they are averaged: the program owns their .grad, or something else held that memory.
  int copied = 0;
  /// Part of forward in which rank 0's buffers were awaited and broadcast.
  double buffers = 0;
  /// After backward: with virtual ranks, where the buffers of all ranks were awaited and averaged.
  double folding = 0;

  StepTimings& operator+=(const StepTimings& other);
};

}  // namespace lockstep
