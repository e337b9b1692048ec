#include "lockstep/train/resume.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

/// Holds the id of the job whose results are in the folder.
constexpr char kJobFile[] = ".job";

std::string averaging_file(int rank) {
  return fmt::format("averaging_{}.safetensors", rank);
}

}  // namespace

bool finds_own_results(const Config& config, const World& world, ProcessGroup& group) {
  if (world.generation == 1) return false;
  int32_t own = 0;
  const fs::path mark = config.train.ckpt_save_dir / kJobFile;
  if (group.rank() == 0) own = fs::exists(mark) && read_file(mark, 4096) == world.job_id ? 1 : 0;
  group.broadcast(&own, 1, DType::kInt32, 0).wait();
  return own == 1;
}

void mark_results(const Config& config, const World& world) {
  write_file_atomically(config.train.ckpt_save_dir / kJobFile, world.job_id);
}

fs::path resume_place(const fs::path& named) {
  const bool is_mindocrs = named.filename() == "train_resume.ckpt" && !fs::exists(named);
  if (!is_mindocrs) return named;
  return named.has_parent_path() ? named.parent_path() : fs::path(".");
}

Resumed resume(const Config& config, bool own_results, torch::nn::Module& weights,
               torch::optim::Optimizer& optimizer) {
  const bool newest = own_results && has_checkpoint(config.train.ckpt_save_dir);
  if (!config.model.resume && !newest) return {};
  const bool named = !newest && !config.model.resume_path.empty();
  const fs::path path = named ? resume_place(config.model.resume_path) : config.train.ckpt_save_dir;
  if (!named && !has_checkpoint(path)) return {};
  Resumed resumed;
  resumed.from = find_checkpoint(path);
  resumed.state = load_checkpoint(path, weights, optimizer, config.model.name());
  if (!resumed.state.rng.empty()) set_rng_bytes(resumed.state.rng);
  return resumed;
}

ExtraFiles averaging_files(const std::vector<AveragingState>& ranks) {
  ExtraFiles files;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    files[averaging_file(static_cast<int>(rank))] = {ranks[rank].tensors, ranks[rank].about};
  }
  return files;
}

AveragingState load_averaging(const fs::path& checkpoint, int rank) {
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

void check_resumable(const TrainingState& state, const Config& config, int shards,
                     int64_t steps_per_epoch) {
  if (state.batch_in_epoch == 0) return;
  const int64_t of_these = state.batch_in_epoch * config.train.loader.batch_size * shards;
  if (state.shards != shards || state.batch_in_epoch >= steps_per_epoch ||
      state.epoch_samples != of_these) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the checkpoint of step {} lies within an epoch of {} shards (ranks, "
                            "without parallel.shards) after {} of its samples; go on with as many "
                            "of them, now {}, and the same batch size and data",
                            state.step, state.shards, state.epoch_samples, shards));
  }
  const int64_t accumulation = config.train.gradient_accumulation_steps;
  if (state.batch_in_epoch % accumulation != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the checkpoint of step {} lies within an epoch after {} batches, "
                            "which is no multiple of train.gradient_accumulation_steps {}; go on "
                            "with the value it was saved with",
                            state.step, state.batch_in_epoch, accumulation));
  }
}

}  // namespace lockstep
