#include "lockstep/train/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/counted.h"
#include "lockstep/base/rounding.h"
#include "lockstep/base/text.h"
#include "lockstep/data/loader.h"
#include "lockstep/error.h"
#include "lockstep/parallel/virtual_ranks.h"

namespace lockstep {
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
int64_t most_gradient_copies(const RunPlan& plan, bool accumulates) {
  int64_t most = 0;
  for (int rank = 0; rank < plan.num_ranks; ++rank) {
    const auto range = deal_virtual_ranks(plan.num_virtual_ranks, rank, plan.num_ranks);
    most = std::max(most, gradient_copies(range, accumulates));
  }
  return most;
}

}  // namespace

int64_t optimizer_steps_of(int64_t steps, const TrainSection& train) {
  return divide_up(steps, train.gradient_accumulation_steps);
}

RunPlan complete_plan(RunPlan plan, const Config& config, int optimizer_copies,
                      int64_t image_elements) {
  const auto& loader = config.train.loader;
  const int64_t most_virtual_ranks = divide_up(plan.num_virtual_ranks, plan.num_ranks);
  plan.samples_a_virtual_rank = divide_up(plan.train_samples, plan.num_virtual_ranks);
  plan.samples_a_rank = plan.samples_a_virtual_rank * most_virtual_ranks;
  plan.steps_per_epoch =
      batches_of(plan.samples_a_virtual_rank, loader.batch_size, loader.drop_remainder);
  plan.optimizer_steps =
      optimizer_steps_of(plan.steps_per_epoch, config.train) * config.scheduler.num_epochs;
  if (config.train.max_steps > 0) {
    plan.optimizer_steps = std::min(plan.optimizer_steps, config.train.max_steps);
  }
  const int64_t copies = most_gradient_copies(plan, config.train.gradient_accumulation_steps > 1);
  plan.weights_bytes = plan.parameters * kFloatBytes;
  plan.gradient_bytes = plan.trainable * kFloatBytes * copies;
  if (has_masters(config)) {
    plan.weights_bytes += plan.parameters * kLowBytes;
    plan.gradient_bytes = plan.trainable * (kLowBytes * copies + kFloatBytes);
  }
  if (config.train.ema) plan.weights_bytes += plan.parameters * kFloatBytes;
  plan.optimizer_bytes = plan.trainable * kFloatBytes * optimizer_copies;
  plan.batches_bytes = loader.batch_size * most_virtual_ranks *
                       (batches_ahead(loader, plan.data_threads) + 1) * image_elements *
                       kFloatBytes;
  return plan;
}

void require_batch(int64_t steps_per_epoch, int64_t samples_a_virtual_rank, int64_t batch_size) {
  if (steps_per_epoch > 0) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("an epoch has no batch: {} samples a virtual rank (rank, without "
                  "parallel.virtual_ranks), batches of {}, remainder dropped; choose a smaller "
                  "train.loader.batch_size",
                  samples_a_virtual_rank, batch_size));
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

std::string describe(const RunPlan& plan, const Config& config, c10::Device device) {
  const int64_t sum =
      plan.weights_bytes + plan.gradient_bytes + plan.optimizer_bytes + plan.batches_bytes;
  const int64_t batch = config.train.loader.batch_size;
  const int64_t accumulation = config.train.gradient_accumulation_steps;
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
      config.model.name(), plan.parameters, plan.trainable,
      precision.empty() ? "" : "Precision: " + precision + "\n", plan.num_ranks,
      device.is_cpu() ? "" : fmt::format(", this one on {}", device.str()), plan.train_samples,
      plan.num_virtual_ranks % plan.num_ranks == 0 ? "" : "at most ", plan.samples_a_rank,
      plan.samples_note, batch, plan.num_virtual_ranks,
      config.parallel.virtual_ranks > 0 ? "virtual ranks" : "ranks", accumulation,
      batch * plan.num_virtual_ranks * accumulation, plan.steps_per_epoch,
      counted(config.scheduler.num_epochs, "epoch"),
      counted(plan.optimizer_steps, "optimizer step"), format_bytes(sum),
      format_bytes(plan.weights_bytes), format_bytes(plan.gradient_bytes),
      format_bytes(plan.optimizer_bytes), format_bytes(plan.batches_bytes),
      config.train.ckpt_save_dir.string());
}

}  // namespace lockstep
