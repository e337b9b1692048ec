#pragma once
// Ranks that trained together end with the same weights, bit by bit; this says whether they did.

#include <cstdint>
#include <string>

#include "lockstep/process_group.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

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
