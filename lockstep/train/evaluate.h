#pragma once
// How good the weights are, over all ranks, every sample counted once.

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "lockstep/amp_level.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"
#include "lockstep/models/model.h"
#include "lockstep/observe/progress.h"
#include "lockstep/process_group.h"
#include "lockstep/train/task/task.h"
#include "lockstep/virtual_ranks.h"

namespace lockstep {

/// How far this rank is.
struct EvalState {
  int64_t evaluated = 0;  ///< Samples, those that cannot be used among them.
  int64_t samples = 0;    ///< In all.
  std::chrono::nanoseconds elapsed{};
};
/// For a progress line: the rates and counts of all virtual ranks, if the others are as far as the
/// `range` of this rank.
Progress to_progress(const EvalState& state, const VirtualRankRange& range);

/// What may stop an evaluation, and who hears of its way and of samples that cannot be used.
struct EvalHooks {
  /// Asked before every batch.
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const std::string& line)> fault = [](const std::string&) {};
  std::function<void(const EvalState& state)> evaluated = [](const EvalState&) {
  };                        ///< After a batch.
  int64_t max_batches = 0;  ///< Of each virtual rank; 0: all. To try an evaluation out.
  std::chrono::seconds disk_limit{1800};  ///< For a rank to read a batch: train.disk_timeout_s.
};

/// Thrown on all ranks when one could not evaluate its part: "no picture", of another rank "on rank
/// 1: no picture". The group is as good as before.
struct EvaluationFailed : Error {
  using Error::Error;
};

/// Collective. Every rank reads its virtual ranks of the data, one after the other, and the sums of
/// all are added in the tree's order: the counts are those of one process, whatever the number of
/// ranks and the batch size, and the loss has the same bits for the same virtual ranks. The buffers
/// of rank 0 (batch norm's statistics) are given to all ranks first: one model is evaluated. Leaves
/// the model in the mode (train or eval) in which it was. `level`: see forward_at(). Once a rank is
/// interrupted it reads no more, and no rank gets a result. Who is done waits for a rank that waits
/// for its disk, up to the limit. Errors: those of the group; kTimeout naming who reads for too
/// long, and what; EvaluationFailed with those of the task and the loader.
std::optional<EvalResult> evaluate(Model& model, BatchSource& loader,
                                   std::span<const DistributedSampler> samplers,
                                   ProcessGroup& group, Task& task, AmpLevel level = AmpLevel::kO0,
                                   const EvalHooks& hooks = {});

}  // namespace lockstep
