#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <vector>

#include "lockstep/checkpoint/training_checkpoint.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/launch/world.h"
#include "lockstep/parallel/averaging_state.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/ema.h"

namespace lockstep {

/// Where a run goes on.
struct Resumed {
  TrainingState state;
  std::filesystem::path from;  ///< Empty: from the start.
};

/// Workers that were started again go on where the job was: whether the results in
/// train.ckpt_save_dir are this job's. Collective; of rank 0's disk.
bool finds_own_results(const Config& config, const World& world, ProcessGroup& group);
/// Says of the results to come whose they are. On rank 0.
void mark_results(const Config& config, const World& world);

/// MindOCR's name for what a run goes on from, DIR/train_resume.ckpt, is DIR here, where the newest
/// checkpoint is looked for; any other path, and such a file that there is, stays as it is.
std::filesystem::path resume_place(const std::filesystem::path& named);

/// Fills weights and optimizer from the checkpoint that model.resume names, or, for True, from the
/// newest in train.ckpt_save_dir if there is any. own_results: from that one whatever is named.
/// Errors: as load_checkpoint().
Resumed resume(const Config& config, bool own_results, torch::nn::Module& weights,
               torch::optim::Optimizer& optimizer);

/// What averaging remembers (see DistributedDataParallel::averaging_state()), as files of a
/// checkpoint: averaging_R.safetensors is rank R's.
ExtraFiles averaging_files(const std::vector<AveragingState>& ranks);
/// The moving average of a checkpoint that has one; without, the average starts from the weights.
/// Errors: as load_extra(), and Ema::load().
void load_ema(const std::filesystem::path& checkpoint, Ema& ema);
/// That of one rank; empty when `checkpoint` has none, or is empty. Errors: as load_extra().
AveragingState load_averaging(const std::filesystem::path& checkpoint, int rank);

/// Whether a run of so many shards (ranks, without parallel.shards) can go on from `state`. Errors:
/// kInvalidArgument when it lies within an epoch and was saved with other batches or shards, or
/// lies within an optimizer step of this train.gradient_accumulation_steps.
void check_resumable(const TrainingState& state, const Config& config, int shards,
                     int64_t steps_per_epoch);

}  // namespace lockstep
