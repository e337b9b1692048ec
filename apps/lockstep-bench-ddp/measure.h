#pragma once
// One rank's part of the benchmark: training steps, timed.

#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::bench {

struct MeasureSpec {
  std::string model;
  bool distributed = true;  ///< False: every rank trains alone; the bound of what ddp can reach.
  int steps = 0;            ///< 0: the model's own number.
  int warmup = -1;          ///< -1: the model's own number.
  double bucket_cap_mb = 25;
  int virtual_ranks = 0;           ///< As DdpOptions has them.
  std::string comm_hook = "none";  ///< As make_comm_hook() knows them.
};

/// Times in milliseconds, one entry a step.
struct Measured {
  int64_t batch = 0;  ///< Of a forward pass.
  int64_t parts = 1;  ///< Forward passes a step.
  std::vector<double> step_ms;
  std::vector<double> exposed_ms;
  double page_faults = 0;  ///< A step, by getrusage(2): what fresh memory costs.
};

/// Cross entropy, SGD 0.01 with momentum 0.9, one intra-op thread. Ranks start together.
Measured measure(const World& world, const MeasureSpec& spec);

}  // namespace lockstep::bench
