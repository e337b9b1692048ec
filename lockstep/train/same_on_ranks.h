#pragma once
// Checks that the ranks of a run agree before they work together. A difference is an error of the
// user; all ranks throw the same one.

#include <cstdint>
#include <string>

#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// Collective: the first operation of a group. Compares the values of config/shared_values.h. Cost:
/// an all_gather of 8 bytes a rank, and more only if ranks differ.
/// Errors: kInvalidArgument "the ranks differ: scheduler.lr is 0.7 on rank 1, 0.1 on rank 0".
void check_same_config(const Config& config, ProcessGroup& group);

/// Collective, once the data are indexed. An incomplete copy of the data would otherwise lead to a
/// deadlock, because ranks count different numbers of batches. `train`, `eval`: samples of the
/// whole data set; 0 for none. Errors: kInvalidArgument "the ranks differ: rank 1 has 170 training
/// samples, rank 0 has 200; ...".
void check_same_samples(int64_t train, int64_t eval, ProcessGroup& group);

// Ranks that trained together end with the same weights, bit by bit; this checks it.

/// The first eight bytes of the SHA-256 over all parameters' values, in the module's order. Buffers
/// are left out: each rank keeps its own statistics until the next forward pass. Cost: about 1 ms
/// per MB.
uint64_t weights_digest(const torch::nn::Module& module);

struct WeightsComparison {
  bool same = true;
  /// "Weights: 00c0ffee00c0ffee on all 4 ranks", or the ranks (up to eight) that differ from rank
  /// 0.
  std::string line;
};

/// Collective; every rank gets the same result. Ranks start with equal weights and apply equal
/// sums, so different weights mean damage or different arithmetic: another kind of processor, or
/// faulty memory.
WeightsComparison compare_weights(uint64_t own, ProcessGroup& group);

}  // namespace lockstep
