#pragma once
// Evaluates the weights over all ranks; every sample counts once.

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "lockstep/amp_policy.h"
#include "lockstep/data/batch_source.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"
#include "lockstep/model.h"
#include "lockstep/observe/progress.h"
#include "lockstep/process_group.h"
#include "lockstep/train/task/task.h"

namespace lockstep::inline internal {

/// Progress of this rank's evaluation.
struct EvalState {
  int64_t evaluated = 0;  ///< Samples, including unusable ones.
  int64_t samples = 0;    ///< In all.
  std::chrono::nanoseconds elapsed{};
};
/// For a progress line: rates and counts of all virtual ranks, assuming that the others are as far
/// as the `range` of this rank.
Progress to_progress(const EvalState& state, const VirtualRankRange& range);

/// Callbacks of an evaluation: its interruption, its progress, and samples that cannot be used.
struct EvalHooks {
  /// Called before every batch.
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const std::string& line)> fault = [](const std::string&) {};
  std::function<void(const EvalState& state)> evaluated = [](const EvalState&) {
  };                                      ///< After a batch.
  int64_t max_batches = 0;                ///< Of each virtual rank; 0: all. For a trial evaluation.
  std::chrono::seconds disk_limit{1800};  ///< For a rank to read a batch: train.disk_timeout_s.
};

/// Thrown on all ranks if one could not evaluate its part: "no picture", or of another rank "on
/// rank 1: no picture". The group remains usable.
struct EvaluationFailed : Error {
  using Error::Error;
};

/// Collective. Every rank evaluates its virtual ranks of the data in turn; the sums of all are
/// added in the tree's order. So the counts are those of one process for any number of ranks and
/// any batch size, unless a sample depends on its batch (see BatchMaker). The loss has the same
/// bits for the same virtual ranks. Rank 0 first broadcasts its buffers (batch norm's statistics),
/// so that all evaluate one model. Leaves the model's mode (train or eval) unchanged. `level`: see
/// forward_at(). An interrupted rank reads no more, and no rank gets a result. Finished ranks wait
/// for a rank that waits for its disk, up to the limit. Errors: those of the group; kTimeout naming
/// the late ranks and their files; EvaluationFailed with those of the task and the loader;
/// kInvalidArgument if the result has other figures than the task's metric_names().
std::optional<EvalResult> evaluate(Model& model, BatchSource& loader,
                                   std::span<const DistributedSampler> samplers,
                                   ProcessGroup& group, Task& task, AmpLevel level = AmpLevel::kO0,
                                   const EvalHooks& hooks = {});

}  // namespace lockstep::inline internal
