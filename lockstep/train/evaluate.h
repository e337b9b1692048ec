#pragma once
// How good the weights are, over all ranks, every sample counted once.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/data/loader.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/distributed_sampler.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// Sums over samples; adding those of two sets gives those of both.
struct EvalSums {
  double samples = 0;
  double loss = 0;
  double correct = 0;   ///< The best class is the label.
  double correct5 = 0;  ///< The label is among the five best.
};

struct EvalResult {
  int64_t samples = 0;
  double loss = 0;
  double acc = 0;
  double top_5 = 0;  ///< 1 when there are at most 5 classes.
  double seconds = 0;

  /// In the order of result.log: acc, and top_5 with more than 5 classes.
  std::vector<std::pair<std::string, double>> metrics(int64_t num_classes) const;
};

/// Of one batch: logits (N, K), labels (N); the first `valid` rows count.
EvalSums eval_sums(const at::Tensor& logits, const at::Tensor& labels, int64_t valid,
                   const LossConfig& config);

/// Collective. Every rank reads its part of the data and the sums of all are added, so the counts
/// are those of one process, whatever the number of ranks and the batch size. The buffers of rank 0
/// (batch norm's statistics) are given to all ranks first: one model is judged. Leaves the model in
/// the mode (train or eval) in which it was.
/// Errors: those of the group and of the loader.
EvalResult evaluate(Model& model, Loader& loader, const DistributedSampler& sampler,
                    ProcessGroup& group, const LossConfig& config);

}  // namespace lockstep
