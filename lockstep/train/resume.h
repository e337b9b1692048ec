#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/parallel/comm_hook_state.h"
#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/ema.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/world.h"
#include "lockstep/writer_fence.h"

namespace lockstep {

/// Where a run goes on.
struct Resumed {
  TrainingState state;
  std::filesystem::path from;  ///< Empty: from the start.
  std::string warning;         ///< Of lost_latest_warning().
};

/// Results in train.ckpt_save_dir are of another job where this one begins: rank 0 takes the mark
/// of that away, before anything can fail. Launchers other than `lockstep run` tell jobs apart by
/// an id that may be the same every day ("none"); a later generation would take such results for
/// its own.
void disown_results(const Config& config, const World& world);
/// Workers that were started again go on where the job was: whether the results in
/// train.ckpt_save_dir are this job's. If so, earlier generations write there no more when it
/// returns, and what they had half written is gone. Collective; of rank 0's disk, who gets `fence`.
/// Errors: those of WriterFence.
bool finds_own_results(const Config& config, const World& world, ProcessGroup& group,
                       WriterFence* fence);
/// Of this generation's writer, in train.ckpt_save_dir, which exists. Errors: those of WriterFence.
WriterFence fence_results(const Config& config, const World& world);
/// Says of the results to come whose they are, and which generation's. On rank 0.
WriterFence mark_results(const Config& config, const World& world);

/// MindOCR's name for what a run goes on from, DIR/train_resume.ckpt, is DIR here, where the newest
/// checkpoint is looked for; any other path, and such a file that there is, stays as it is.
std::filesystem::path resume_place(const std::filesystem::path& named);

/// Fills weights and optimizer from the checkpoint that model.resume names, or, for True, from the
/// newest in train.ckpt_save_dir if there is any. own_results: from that one whatever is named.
/// Errors: as load_checkpoint().
Resumed resume(const Config& config, bool own_results, torch::nn::Module& weights,
               torch::optim::Optimizer& optimizer);

/// What averaging remembers (see DistributedDataParallel::comm_hook_state()), as files of a
/// checkpoint: averaging_R.safetensors is rank R's.
ExtraFiles averaging_files(const std::vector<CommHookState>& ranks);
/// The moving average of a checkpoint that has one; without, the average starts from the weights.
/// Errors: as load_extra(), and Ema::load().
void load_ema(const std::filesystem::path& checkpoint, Ema& ema);
/// That of one rank; empty when `checkpoint` has none, or is empty. Errors: as load_extra().
CommHookState load_averaging(const std::filesystem::path& checkpoint, int rank);

/// Whether an epoch of `dataset_size` samples can be gone on with from `state`. Errors:
/// kInvalidArgument when more of them were taken than there are.
void check_resumable(const TrainingState& state, int64_t dataset_size);

/// What a run has of an epoch that another number of ranks, or other batches, may have begun. What
/// those took is a prefix of the epoch's order, TrainingState::epoch_samples long.
struct EpochShape {
  int virtual_ranks = 1;        ///< Of this run: ranks, without parallel.virtual_ranks.
  int64_t steps_per_epoch = 0;  ///< Micro-steps of a whole epoch.
  int64_t steps_left = 0;       ///< Of the one that `state` lies in, with the rest dealt anew.
};
/// Samples of padding that each virtual rank gets behind the `rest` of an epoch that was dealt
/// anew: 1 where its last batch would have a single sample, which batch norm cannot take, and that
/// of a whole epoch
/// (`whole` samples a virtual rank) would not; else 0.
int64_t more_padding(int64_t whole, int64_t rest, const LoaderConfig& loader);

/// Counts `state` in this run's steps. The rest of the epoch is its last `steps_left` steps, so
/// every epoch ends at a multiple of steps_per_epoch. What a run of the same shape saved stays as
/// it is, bit for bit. Returns whether anything changed.
bool recount(TrainingState& state, const EpochShape& shape);

/// Where the micro-step at hand stands in the learning-rate schedule, in steps of this run: the
/// whole number state.schedule_step; but in an epoch that was dealt anew, as far into the epoch as
/// its `dataset_size` samples are used. So the schedule never goes back, whatever the numbers of
/// ranks before and after, and takes up the next epoch at its begin.
double schedule_position(const TrainingState& state, int64_t steps_per_epoch, int64_t dataset_size);

}  // namespace lockstep
