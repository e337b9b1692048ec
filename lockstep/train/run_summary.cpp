#include "lockstep/train/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/counted.h"
#include "lockstep/base/rounding.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/reduce_tree.h"
#include "lockstep/data/loader.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/error.h"
#include "lockstep/train/rank_change.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kLowBytes = 2;

bool has_masters(const Config& config) {
  return config.system.amp_level >= AmpLevel::kO2;
}

const char* computed_low(AmpLevel level) {
  switch (level) {
    case AmpLevel::kO0:
      return "nothing";
    case AmpLevel::kO1:
      return "convolutions and matrix products";
    case AmpLevel::kO2:
      return "all but batch norm";
    case AmpLevel::kO3:
      break;
  }
  return "all";
}

/// Copies of the whole module's gradients that a rank holds at once: see LocalReduction.
int64_t gradient_copies(const VirtualRankRange& range, bool accumulates) {
  if (range.count == 1) return 1;
  if (accumulates) return range.count + 1;
  int64_t most = 0;
  for (int index = 0; index < range.count; ++index) {
    const auto sums = tree_nodes({range.first, range.first + index}, range.total);
    most = std::max<int64_t>(most, std::ssize(sums) + 1);
  }
  return most;
}

/// Of the rank with the most.
int64_t most_gradient_copies(const RunSummary& summary, bool accumulates) {
  int64_t most = 0;
  for (int rank = 0; rank < summary.num_ranks; ++rank) {
    const auto range = deal_virtual_ranks(summary.num_virtual_ranks, rank, summary.num_ranks);
    most = std::max(most, gradient_copies(range, accumulates));
  }
  return most;
}

}  // namespace

int64_t optimizer_steps_of(int64_t steps, const TrainSection& train) {
  return divide_up(steps, train.gradient_accumulation_steps);
}

int64_t all_optimizer_steps(const RunPlace& place, const TrainSection& train) {
  int64_t steps = place.done;
  if (place.later_epochs >= 0) {
    steps += optimizer_steps_of(place.left, train) +
             place.later_epochs * optimizer_steps_of(place.steps_per_epoch, train);
  }
  return train.max_steps > 0 ? std::min(steps, train.max_steps) : steps;
}

int64_t micro_steps_of(int64_t batches, int64_t samples, const Config& config, int parts) {
  const auto& train = config.train;
  if (config.parallel.global_batch == 0 || !train.loader.drop_remainder) return batches;
  return samples / global_batch(train, parts) * train.gradient_accumulation_steps;
}

RunSummary complete_summary(RunSummary summary, const Config& config, int optimizer_copies,
                            int64_t sample_bytes) {
  const auto& loader = config.train.loader;
  const int64_t most_virtual_ranks = divide_up(summary.num_virtual_ranks, summary.num_ranks);
  summary.samples_a_virtual_rank = divide_up(summary.train_samples, summary.num_virtual_ranks);
  summary.samples_a_rank = summary.samples_a_virtual_rank * most_virtual_ranks;
  summary.steps_per_epoch = micro_steps_of(
      batches_of(summary.samples_a_virtual_rank, loader.batch_size, loader.drop_remainder),
      summary.train_samples, config, summary.num_virtual_ranks);
  const int64_t steps = summary.steps_per_epoch;
  summary.optimizer_steps =
      all_optimizer_steps({0, steps, config.scheduler.num_epochs - 1, steps}, config.train);
  const bool accumulates = config.train.gradient_accumulation_steps > 1;
  const int64_t copies = most_gradient_copies(summary, accumulates);
  summary.weights_bytes = summary.parameters * kFloatBytes;
  summary.gradient_bytes = summary.trainable * kFloatBytes * copies;
  if (has_masters(config)) {
    summary.weights_bytes += summary.parameters * kLowBytes;
    summary.gradient_bytes = summary.trainable * (kLowBytes * copies + kFloatBytes);
  }
  if (config.train.ema) summary.weights_bytes += summary.parameters * kFloatBytes;
  summary.optimizer_bytes = summary.trainable * kFloatBytes * optimizer_copies;
  summary.batches_bytes = loader.batch_size * most_virtual_ranks *
                          (batches_ahead(loader, summary.data_threads) + 1) * sample_bytes;
  return summary;
}

void require_batch(int64_t steps_per_epoch, int64_t samples_a_virtual_rank, const Config& config) {
  if (steps_per_epoch > 0) return;
  if (config.parallel.global_batch > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("an epoch has no optimizer step: the data have fewer samples than "
                            "parallel.global_batch ({}), remainder dropped; choose a smaller one",
                            config.parallel.global_batch));
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("an epoch has no batch: {} samples a virtual rank (rank, without "
                  "parallel.virtual_ranks), batches of {}, remainder dropped; choose a smaller "
                  "train.loader.batch_size",
                  samples_a_virtual_rank, config.train.loader.batch_size));
}

std::string precision_line(const Config& config, c10::DeviceType device) {
  const auto& system = config.system;
  if (system.amp_level == AmpLevel::kO0 && !config.loss_scaler) return "";
  const bool on_cpu = device == c10::kCPU;
  std::string line = fmt::format("amp_level {}: {} in {}", to_string(system.amp_level),
                                 computed_low(system.amp_level), on_cpu ? "bfloat16" : "float16");
  if (on_cpu && system.amp_level != AmpLevel::kO0) {
    line += " (libtorch has no float16 convolutions on the CPU)";
  }
  const LossScalerConfig scaler = config.loss_scaler.value_or(LossScalerConfig());
  line += fmt::format(", weights float32; loss scale {}{}", scaler.loss_scale,
                      scaler.dynamic ? fmt::format(" at first, times {} after {} clean steps",
                                                   scaler.scale_factor, scaler.scale_window)
                                     : "");
  return line;
}

std::string describe(const RunSummary& summary, const Config& config, c10::Device device) {
  const int64_t sum = summary.weights_bytes + summary.gradient_bytes + summary.optimizer_bytes +
                      summary.batches_bytes;
  const std::string precision = precision_line(config, device.type());
  return fmt::format(
      "Model: {}\n"
      "Parameters: {} ({} trainable)\n"
      "{}"
      "Ranks: {}{}\n"
      "Samples: {} ({}{} a rank){}\n"
      "Batch: {} x {} {} x {} accumulated = {}\n"
      "Steps: {} an epoch, {}, {} in all\n"
      "Memory of a rank: {} = weights {} + gradients {} + optimizer {} + batches {}; activations "
      "come on top\n"
      "Results: {}\n",
      config.model.name(), summary.parameters, summary.trainable,
      precision.empty() ? "" : "Precision: " + precision + "\n", summary.num_ranks,
      device.is_cpu() ? "" : fmt::format(", this one on {}", device.str()), summary.train_samples,
      summary.num_virtual_ranks % summary.num_ranks == 0 ? "" : "at most ", summary.samples_a_rank,
      summary.samples_note, config.train.loader.batch_size, summary.num_virtual_ranks,
      config.parallel.virtual_ranks > 0 ? "virtual ranks" : "ranks",
      config.train.gradient_accumulation_steps,
      global_batch(config.train, summary.num_virtual_ranks), summary.steps_per_epoch,
      counted(config.scheduler.num_epochs, "epoch"),
      counted(summary.optimizer_steps, "optimizer step"), format_bytes(sum),
      format_bytes(summary.weights_bytes), format_bytes(summary.gradient_bytes),
      format_bytes(summary.optimizer_bytes), format_bytes(summary.batches_bytes),
      config.train.ckpt_save_dir.string());
}

}  // namespace lockstep::inline internal
