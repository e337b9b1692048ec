#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/checkpoint_folder.h"
#include "lockstep/comm_hook.h"
#include "lockstep/process_group.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/ema.h"
#include "lockstep/train/optimized_parts.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// The start of a run.
struct Resumed {
  TrainingState state;
  std::filesystem::path from;  ///< Empty: from the start.
  std::string warning;         ///< From lost_latest_warning().
  std::string anew;  ///< A line, if model.resume is True and there is no checkpoint to resume from.
};

/// A new job finds results of another job in train.ckpt_save_dir: rank 0 removes their mark before
/// anything can fail. Launchers other than `lockstep run` identify jobs by an id that may be the
/// same every day ("none"). A later generation would take such results for its own.
void disown_results(const Config& config, const World& world);
/// Restarted workers continue from the job's own results: returns whether those in
/// train.ckpt_save_dir are this job's. If so, earlier generations can no longer write there, and
/// their partial files are removed. Collective; reads rank 0's disk, and rank 0 gets `fence`.
/// Errors: those of WriterFence.
bool finds_own_results(const Config& config, const World& world, ProcessGroup& group,
                       WriterFence* fence);
/// The fence of this generation's writer, in train.ckpt_save_dir, which exists. Errors: those of
/// WriterFence.
WriterFence fence_results(const Config& config, const World& world);
/// Marks the results to come with their job and generation. On rank 0.
WriterFence mark_results(const Config& config, const World& world);

/// MindOCR names the start of a resumed run DIR/train_resume.ckpt. Here that means DIR, which is
/// searched for the newest checkpoint. Any other path stays as it is, and so does such a file if it
/// exists.
std::filesystem::path resume_place(const std::filesystem::path& named);

/// Loads weights and optimizer from the checkpoint that model.resume names, or, for True, from the
/// newest in train.ckpt_save_dir if there is one. `own_results`: from the newest in any case, if
/// there is one. `optimized`: with several optimizers, of which `optimizer` is the first; the
/// others are loaded too. Errors: as load_checkpoint(), check_saved_parts() and load_optimizers().
Resumed resume(const Config& config, bool own_results, torch::nn::Module& weights,
               torch::optim::Optimizer& optimizer,
               const std::vector<OptimizedPart>& optimized = {});

/// The state of averaging (see DistributedDataParallel::comm_hook_state()) as files of a
/// checkpoint: averaging_R.safetensors is rank R's.
ExtraFiles averaging_files(const std::vector<CommHookState>& ranks);
/// Loads the moving average of a checkpoint that has one; otherwise the average starts from the
/// weights. Errors: as load_extra(), and Ema::load().
void load_ema(const std::filesystem::path& checkpoint, Ema& ema);
/// The averaging state of one rank; empty if `checkpoint` has none, or is empty. Errors: as
/// load_extra().
CommHookState load_averaging(const std::filesystem::path& checkpoint, int rank);

/// Checks that an epoch of `dataset_size` samples can be resumed from `state`. Errors:
/// kInvalidArgument if the samples already taken leave none.
void check_resumable(const TrainingState& state, int64_t dataset_size);

/// A warning if `state` lies within an epoch of samples with another
/// TrainingState::samples_digest than `digest`, of which 0 is one: samples got weights, or have
/// none any more. "" if it does not, or if that of `state` is unknown.
std::string changed_samples_note(const TrainingState& state, uint64_t digest);

/// This run's view of an epoch that another number of ranks, or other batches, may have begun. The
/// samples taken so far are a prefix of the epoch's order, TrainingState::epoch_samples long.
struct EpochShape {
  int virtual_ranks = 1;        ///< Of this run; equals the ranks without parallel.virtual_ranks.
  int64_t steps_per_epoch = 0;  ///< Micro-steps of a whole epoch.
  int64_t steps_left = 0;       ///< Of the epoch in `state`, with the rest dealt anew.
  int64_t dataset_size = 0;     ///< Samples of a whole epoch.
};
/// Samples of padding that each virtual rank gets behind the `rest` of an epoch that was dealt
/// anew. It is 1 if the last batch would have a single sample, which batch norm rejects. It is 0
/// otherwise, or if that of a whole epoch (`whole` samples a virtual rank) has one too.
int64_t more_padding(int64_t whole, int64_t rest, const LoaderConfig& loader);

/// Converts `state` to this run's steps. The rest of the epoch is its last `steps_left` steps, so
/// every epoch ends at a multiple of steps_per_epoch. Dropped steps keep their share of the steps
/// so far, whether ranks or batches changed. The state of a run of the same shape stays as it is,
/// bit for bit. Returns whether anything changed.
bool recount(TrainingState& state, const EpochShape& shape);

/// The position of the current micro-step in the learning-rate schedule, in steps of this run: the
/// whole number state.schedule_step. In an epoch that was dealt anew it is the share of its
/// `dataset_size` samples used so far. So the schedule never goes back, whatever the numbers of
/// ranks, and the next epoch starts at its own begin.
double schedule_position(const TrainingState& state, int64_t steps_per_epoch, int64_t dataset_size);

}  // namespace lockstep::inline internal
