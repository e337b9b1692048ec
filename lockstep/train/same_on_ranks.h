#pragma once
// What the ranks of a run must have in common before they work together. A rank that has it
// otherwise is a mistake of the user's, told on every rank: all of them throw the same error.

#include <cstdint>
#include <string>

#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// Collective: the first thing that a group does. Compares what config/shared_values.h says must
/// be the same. Cost: an all_gather of 8 bytes a rank, and more only where ranks differ.
/// Errors: kInvalidArgument "the ranks differ: scheduler.lr is 0.7 on rank 1, 0.1 on rank 0".
void check_same_config(const Config& config, ProcessGroup& group);

/// Collective, once the data are indexed. A copy that lacks files would else end in a riddle: ranks
/// that count their batches otherwise wait for each other in vain. `train`, `eval`: samples of the
/// whole data set; 0 for none. Errors: kInvalidArgument "the ranks differ: rank 1 has 170 training
/// samples, rank 0 has 200; ...".
void check_same_samples(int64_t train, int64_t eval, ProcessGroup& group);

// Ranks that trained together end with the same weights, bit by bit; this says whether they did.

/// The first eight bytes of the SHA-256 over all parameters' values, in the module's order. Buffers
/// are left out: ranks keep statistics of their own until the next forward pass. Cost: about 1 ms a
/// MB.
uint64_t weights_digest(const torch::nn::Module& module);

struct WeightsComparison {
  bool same = true;
  /// "Weights: 00c0ffee00c0ffee on all 4 ranks", or which ranks' differ from rank 0's (up to
  /// eight).
  std::string line;
};

/// Collective; every rank gets the same. Whatever adds the gradients, all ranks get the same sums,
/// and update with them what was the same before. Weights that differ are damage, or arithmetic
/// that differs: processors of another kind, a faulty memory.
WeightsComparison compare_weights(uint64_t own, ProcessGroup& group);

}  // namespace lockstep
