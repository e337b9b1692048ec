// One micro-step of training: forward, backward, and what becomes of the gradients.

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/amp/autocast.h"
#include "lockstep/amp/gradients.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/progress.h"
#include "lockstep/train/optim/clip.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/trainer.h"

namespace lockstep {
namespace {

/// Part `index` of `count`: in memory of its own, because sums in libtorch's kernels may depend on
/// how their input is aligned.
Batch part_of(const Batch& batch, int index, int count) {
  if (count == 1) return batch;
  const int64_t rows = batch.images.size(0) / count;
  const auto own = [&](const at::Tensor& all) { return all.narrow(0, index * rows, rows).clone(); };
  Batch part{own(batch.images), {}, rows};
  for (const auto& column : batch.targets) part.targets.push_back(own(column));
  return part;
}

}  // namespace

AccumulationSlot accumulation_slot(int64_t index, int64_t steps_per_epoch, int64_t accumulation) {
  const int64_t first = index / accumulation * accumulation;
  const int64_t size = std::min(accumulation, steps_per_epoch - first);
  return {first, size, index == first + size - 1};
}

StepReport Trainer::micro_step(const Batch& batch) {
  const auto slot = accumulation_slot(state_.batch_in_epoch, steps_per_epoch_,
                                      config().train.gradient_accumulation_steps);
  StepReport report{.epoch = state_.epoch + 1, .steps_per_epoch = steps_per_epoch_};
  std::vector<double> losses;
  if (slot.last) {
    losses = forward_backward(batch, slot);
    report.timings = ddp_.timings();
  } else {
    const auto hold = ddp_.no_sync();
    losses = forward_backward(batch, slot);
  }
  const auto agreed = agree(losses, slot.last && gradients_overflow(), batch);
  report.loss = agreed.loss;
  report.faults = batch.faults;
  report.faults_of_all = agreed.faults;
  report.remarks = batch.remarks;
  report.remarks_of_all = agreed.remarks;
  report.lr = learning_rate(config().scheduler, state_.schedule_step, steps_per_epoch_);
  if (slot.last && !agreed.overflow) update(report.lr);
  if (slot.last && agreed.overflow) drop_update(slot);
  if (slot.last) end_step(agreed.overflow);
  if (parts_.ema && !agreed.overflow) {
    if (parts_.masters) parts_.masters->collect_buffers();
    parts_.ema->update();
  }
  ++state_.batch_in_epoch;
  ++state_.schedule_step;
  const int64_t samples = batch.images.size(0) * num_ranks();
  state_.samples += samples;
  state_.epoch_samples += samples;
  state_.epoch_loss += report.loss;
  report.updated = slot.last && !agreed.overflow;
  report.dropped = agreed.overflow;
  report.loss_scale = state_.loss_scale;
  report.step_in_epoch = state_.batch_in_epoch;
  report.optimizer_steps = state_.step;
  return report;
}

/// A micro-step counts by its part of the optimizer step's samples: the last one may have fewer.
/// Returns the losses of this rank's shards.
std::vector<double> Trainer::forward_backward(const Batch& batch, const AccumulationSlot& slot) {
  const int64_t size = config().train.loader.batch_size;
  const int64_t end = std::min((slot.first + slot.size) * size, samples_a_shard_);
  const auto samples = static_cast<double>(end - slot.first * size);
  std::vector<double> losses;
  ddp_.for_each_shard([&](int shard) {
    Batch part = part_of(batch, shard - shards().first, shards().count);
    part.move_to(device_);
    const int64_t micro_step = state_.schedule_step + state_.dropped_batches;
    seed_shard(static_cast<uint64_t>(config().system.seed), micro_step, shard, device_);
    const auto output = forward_at(config().system.amp_level, part.images,
                                   [&](const at::Tensor& images) { return ddp_.forward(images); });
    const auto loss = parts_.task.loss(output, part.targets);
    const double parts = samples / static_cast<double>(part.images.size(0));
    const auto of_step = slot.size == 1 ? loss : loss / parts;
    (loss_scale() == 1 ? of_step : of_step * loss_scale()).backward();
    losses.push_back(loss.item().toDouble());
  });
  return losses;
}

bool Trainer::gradients_overflow() const {
  return state_.loss_scale && !all_finite(gradients_of(ddp_.parameters()));
}

void Trainer::update(double lr) {
  if (parts_.masters) parts_.masters->take_gradients();
  unscale(gradients_of(parameters_), loss_scale());
  if (config().train.clip_grad) clip_gradients(parameters_, config().train.clip_norm);
  set_learning_rate(parts_.optimizer, lr);
  parts_.optimizer.step();
  if (parts_.masters) parts_.masters->publish();
  ++state_.step;
  state_.metric_value.reset();  // these weights have not been judged
  if (state_.step == config().train.max_steps) stop_ = StopReason::kMaxSteps;
}

void Trainer::drop_update(const AccumulationSlot& slot) {
  if (!config().system.drop_overflow_update) {
    throw Error(ErrorCode::kDiverged,
                fmt::format("epoch: {} step: {}. Gradients overflow with a loss scale of {}. With "
                            "system.drop_overflow_update=True such a step is left out",
                            state_.epoch + 1, state_.batch_in_epoch + 1, loss_scale()));
  }
  state_.dropped_batches += slot.size;
  state_.schedule_step -= slot.size;
}

void Trainer::end_step(bool overflow) {
  ddp_.zero_grad();
  report_step();
  if (state_.loss_scale) {
    const auto options = config().loss_scaler.value_or(LossScalerConfig()).options();
    state_.loss_scale = next_loss_scale(*state_.loss_scale, overflow, options);
  }
  if (pending_stop_) stop_ = *pending_stop_;
}

}  // namespace lockstep
