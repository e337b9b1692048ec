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

namespace lockstep::inline internal {

/// Collective: the first operation of a group. Compares the values of config/shared_values.h. Cost:
/// an all_gather of 8 bytes a rank, and more only if ranks differ.
/// Errors: kInvalidArgument "the ranks differ: scheduler.lr is 0.7 on rank 1, 0.1 on rank 0".
void check_same_config(const Config& config, ProcessGroup& group);

/// The samples of a whole data set.
struct DataSamples {
  int64_t count = 0;    ///< 0 for none.
  uint64_t digest = 0;  ///< Of names and labels, where they have names, and of weights; else 0.
};

/// Collective, once the data are indexed. An incomplete copy of the data would otherwise lead to a
/// deadlock, because ranks count different numbers of batches. A copy with other names would give
/// ranks other pictures under the same number. Errors: kInvalidArgument "the ranks differ: rank 1
/// has 170 training samples, rank 0 has 200; ...", "the ranks differ: the training samples of rank
/// 1 have other names, labels or weights than those of rank 0; ...".
void check_same_samples(const DataSamples& train, const DataSamples& eval, ProcessGroup& group);

/// Collective. Hosts may have their copies of a teacher's weights in different places, and no rank
/// gets those of another. `digest`: Task::teacher_digest(). Errors: kInvalidArgument "the ranks
/// differ: the teacher (loss.teacher.pretrained) of rank 1 has other weights than that of rank 0".
void check_same_teacher(uint64_t digest, ProcessGroup& group);

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

}  // namespace lockstep::inline internal
