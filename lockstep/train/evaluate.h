#pragma once
// How good the weights are, over all ranks, every sample counted once.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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

/// Collective. Every rank reads its shards of the data, one after the other, and the sums of all
/// are added in the tree's order: the counts are those of one process, whatever the number of ranks
/// and the batch size, and the loss has the same bits for the same shards. The buffers of rank 0
/// (batch norm's statistics) are given to all ranks first: one model is judged. Leaves the model in
/// the mode (train or eval) in which it was. `level`: see forward_at().
/// `interrupted` is asked before every batch. Once it says yes on a rank, that rank reads no more,
/// and no rank gets a result. Errors: those of the group and of the loader.
std::optional<EvalResult> evaluate(
    Model& model, Loader& loader, std::span<const DistributedSampler> samplers, ProcessGroup& group,
    const LossConfig& config, AmpLevel level = AmpLevel::kO0,
    const std::function<bool()>& interrupted = [] { return false; });

}  // namespace lockstep
