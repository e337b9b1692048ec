#pragma once
// One rank's part of the benchmark: training steps, timed.

#include <string>
#include <vector>

#include "lockstep/ddp_options.h"
#include "lockstep/world.h"

namespace lockstep::bench {

/// The networks of `lockstep bench ddp`, usual for comparisons of training steps.
const std::vector<std::string>& model_names();

struct MeasureSpec {
  std::string model;
  bool distributed = true;  ///< False: every rank trains alone; the upper bound of ddp.
  int steps = 0;            ///< 0: the model's own number.
  int warmup = -1;          ///< -1: the model's own number.
  double bucket_cap_mb = DdpOptions().bucket_cap_mb;
  int virtual_ranks = 0;           ///< As in DdpOptions.
  std::string comm_hook = "none";  ///< A name for make_comm_hook().
};

/// Times in milliseconds, one entry per step.
struct Measured {
  int64_t batch = 0;  ///< Of a forward pass.
  int64_t parts = 1;  ///< Forward passes per step.
  std::vector<double> step_ms;
  std::vector<double> exposed_ms;
  double page_faults = 0;  ///< Per step, by getrusage(2): the cost of fresh memory.
};

/// Cross entropy, SGD 0.01 with momentum 0.9, one intra-op thread. Ranks start together.
Measured measure(const World& world, const MeasureSpec& spec);

}  // namespace lockstep::bench
