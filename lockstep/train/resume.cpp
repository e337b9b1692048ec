#include "lockstep/train/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/generation_token.h"
#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/staged_folder.h"
#include "lockstep/error.h"
#include "lockstep/train/epoch_loss.h"

namespace lockstep::inline internal {

namespace fs = std::filesystem;

namespace {

/// Names the job whose results are in the folder: see name_of().
constexpr char kJobFile[] = ".job";

/// Identifies a job in all its generations. Another job on another day may have the same id.
std::string name_of(const World& world) {
  const std::string launch = launch_of(world.generation_token);
  return launch.empty() ? world.job_id : fmt::format("{} {}", world.job_id, launch);
}

std::string averaging_file(int rank) {
  return fmt::format("averaging_{}.safetensors", rank);
}

}  // namespace

void disown_results(const Config& config, const World& world) {
  if (world.rank != 0 || world.generation > 1) return;
  std::error_code error;
  const fs::path mark = config.train.ckpt_save_dir / kJobFile;
  if (!fs::exists(mark, error)) return;
  const auto lock = FolderLock::take(config.train.ckpt_save_dir);
  if (lock) fs::remove(mark, error);  // an active run keeps its mark
}

bool finds_own_results(const Config& config, const World& world, ProcessGroup& group,
                       WriterFence* fence) {
  if (world.generation == 1) return false;
  int32_t own = 0;
  const fs::path& dir = config.train.ckpt_save_dir;
  const fs::path mark = dir / kJobFile;
  if (group.rank() == 0) own = fs::exists(mark) && read_file(mark, 4096) == name_of(world) ? 1 : 0;
  if (own == 1) *fence = fence_results(config, world);  // before any rank looks for a checkpoint
  group.broadcast(&own, 1, DType::kInt32, 0).wait();
  return own == 1;
}

WriterFence fence_results(const Config& config, const World& world) {
  return {config.train.ckpt_save_dir, world.job_id, world.generation, world.generation_token};
}

WriterFence mark_results(const Config& config, const World& world) {
  const WriterFence fence = fence_results(config, world);
  write_file_atomically(config.train.ckpt_save_dir / kJobFile, name_of(world));
  return fence;
}

fs::path resume_place(const fs::path& named) {
  const bool is_mindocrs = named.filename() == "train_resume.ckpt" && !fs::exists(named);
  if (!is_mindocrs) return named;
  return named.has_parent_path() ? named.parent_path() : fs::path(".");
}

Resumed resume(const Config& config, bool own_results, torch::nn::Module& weights,
               torch::optim::Optimizer& optimizer, const std::vector<OptimizedPart>& optimized) {
  const bool newest = own_results && has_checkpoint(config.train.ckpt_save_dir);
  if (!config.model.resume && !newest) return {};
  const bool named = !newest && !config.model.resume_path.empty();
  const fs::path path = named ? resume_place(config.model.resume_path) : config.train.ckpt_save_dir;
  Resumed resumed;
  if (!named && !has_checkpoint(path)) {
    resumed.anew = fmt::format("no checkpoint in {}: the run starts anew", path.string());
    return resumed;
  }
  resumed.warning = lost_latest_warning(path);
  resumed.from = find_checkpoint(path);
  check_saved_parts(resumed.from, optimized);
  resumed.state = load_checkpoint(path, weights, optimizer, config.model.name());
  load_optimizers(resumed.from, weights, optimized);
  if (!resumed.state.rng.empty()) set_rng_bytes(resumed.state.rng);
  return resumed;
}

ExtraFiles averaging_files(const std::vector<CommHookState>& ranks) {
  ExtraFiles files;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    files[averaging_file(static_cast<int>(rank))] = {ranks[rank].tensors, ranks[rank].about};
  }
  return files;
}

CommHookState load_averaging(const fs::path& checkpoint, int rank) {
  if (checkpoint.empty()) return {};
  auto file = load_extra(checkpoint, averaging_file(rank));
  if (!file) return {};
  return {std::move(file->metadata), std::move(file->tensors)};
}

void load_ema(const fs::path& checkpoint, Ema& ema) {
  if (checkpoint.empty()) return;
  const auto file = load_extra(checkpoint, kEmaFile);
  if (file) ema.load(file->tensors, (checkpoint / kEmaFile).string());
}

void check_resumable(const TrainingState& state, int64_t dataset_size) {
  if (state.epoch_samples < dataset_size) return;
  if (state.epoch_samples == 0) return;  // another check reports empty data
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the checkpoint of step {} lies within an epoch, after {} of its samples, "
                  "and the data have {}; resume with the data of that run",
                  state.step, state.epoch_samples, dataset_size));
}

std::string changed_samples_note(const TrainingState& state, uint64_t digest) {
  if (state.epoch_samples == 0 || state.samples_digest.value_or(digest) == digest) return "";
  return fmt::format(
      "the training samples have other names, labels, weights or another order than in the run "
      "that goes on: of epoch {}, some may be used twice and others not at all",
      state.epoch + 1);
}

int64_t more_padding(int64_t whole, int64_t rest, const LoaderConfig& loader) {
  if (loader.drop_remainder || loader.batch_size == 1) return 0;
  return rest % loader.batch_size == 1 && whole % loader.batch_size != 1 ? 1 : 0;
}

namespace {

/// The steps of this run up to the position of `state`, rounded down; dropped ones included.
int64_t steps_so_far(const TrainingState& state, const EpochShape& shape) {
  const int64_t whole = state.epoch * shape.steps_per_epoch;
  if (!state.dealt_anew) return whole + state.batch_in_epoch;
  const int64_t used =
      shape.steps_per_epoch * state.epoch_samples / std::max<int64_t>(1, shape.dataset_size);
  return whole + std::min(used, state.batch_in_epoch);
}

}  // namespace

bool recount(TrainingState& state, const EpochShape& shape) {
  const int64_t batch = state.epoch_samples > 0 ? shape.steps_per_epoch - shape.steps_left : 0;
  const int64_t before = state.schedule_step + state.dropped_batches;
  const bool changes = batch != state.batch_in_epoch || shape.virtual_ranks != state.virtual_ranks;
  state.dealt_anew = state.epoch_samples > 0 && (state.dealt_anew || changes);
  if (batch != state.batch_in_epoch) {
    if (!state.epoch_items) state.epoch_loss = mean_loss(state) * static_cast<double>(batch);
    state.batch_in_epoch = batch;
  }
  state.virtual_ranks = shape.virtual_ranks;
  const int64_t now = state.epoch * shape.steps_per_epoch + state.batch_in_epoch;
  if (before > 0 && (changes || now != before)) {
    state.dropped_batches =
        state.dropped_batches * steps_so_far(state, shape) / before;  // down: never back
  }
  state.schedule_step = now - state.dropped_batches;
  return changes;
}

double schedule_position(const TrainingState& state, int64_t steps_per_epoch,
                         int64_t dataset_size) {
  if (!state.dealt_anew) return static_cast<double>(state.schedule_step);
  const auto steps = static_cast<double>(steps_per_epoch);
  const double used = static_cast<double>(state.epoch_samples) / static_cast<double>(dataset_size);
  const auto dropped = static_cast<double>(state.dropped_batches);
  return (static_cast<double>(state.epoch) + std::min(1.0, used)) * steps - dropped;
}

}  // namespace lockstep::inline internal
