#pragma once
// The parts of the time of a data parallel training step.

namespace lockstep {

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
  /// Gradients of at least 1 MiB that were copied because they were outside the averaged memory:
  /// the program owns their .grad, or another object held that memory.
  int copied = 0;
  /// Part of forward that waited for and broadcast rank 0's buffers.
  double buffers = 0;
  /// After backward, with virtual ranks: the wait for the buffers of all ranks and their average.
  double folding = 0;

  StepTimings& operator+=(const StepTimings& other);
};

}  // namespace lockstep
