// One micro-step of training: forward, backward, and the use of the gradients.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <variant>

#include "lockstep/amp/gradients.h"
#include "lockstep/autocast.h"
#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/progress.h"
#include "lockstep/train/epoch_loss.h"
#include "lockstep/train/last_batch.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/own_call.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/task/logged_values.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {
namespace {

[[noreturn]] void report_no_gradient(const LossConfig& config) {
  const auto* own = std::get_if<OwnLoss>(&config);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("loss: '{}' gave a number without a gradient: it must follow from the "
                          "network's outputs, without detach() or item(), and parameters must take "
                          "part in them",
                          own != nullptr ? own->name : class_loss_name(config)));
}

/// Some losses are not finite, and the shares of all these in the items are 0.
bool bad_only_without_items(const std::vector<double>& losses, const std::vector<double>& shares) {
  bool any = false;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (std::isfinite(losses[i])) continue;
    if (shares[i] > 0) return false;
    any = true;
  }
  return any;
}

}  // namespace

AccumulationSlot accumulation_slot(int64_t index, int64_t steps_per_epoch, int64_t accumulation) {
  const int64_t first = index / accumulation * accumulation;
  const int64_t size = std::min(accumulation, steps_per_epoch - first);
  return {first, size, index == first + size - 1};
}

/// The slot of the current micro-step, counted from the start of this run's part of the epoch.
AccumulationSlot Trainer::slot_of_step() const {
  return accumulation_slot(state_.batch_in_epoch - part_.first_batch,
                           steps_per_epoch_ - part_.first_batch,
                           config().train.gradient_accumulation_steps);
}

bool Trainer::begins_step(const AccumulationSlot& slot) const {
  return slot.first == state_.batch_in_epoch - part_.first_batch;
}

double Trainer::current_rate() const {
  const double position = schedule_position(state_, steps_per_epoch_, dataset_size());
  return rate_factor_ * learning_rate(config().scheduler, position, steps_per_epoch_,
                                      state_.plateau ? state_.plateau->times : 0);
}

StepReport Trainer::report_before(const std::vector<MicroBatches>& micro_steps) const {
  StepReport report{.epoch = state_.epoch + 1,
                    .step_in_epoch = state_.batch_in_epoch + std::ssize(micro_steps),
                    .steps_per_epoch = steps_per_epoch_,
                    .micro_steps = std::ssize(micro_steps),
                    .optimizer_steps = state_.step,
                    .lr = current_rate()};
  int64_t rows = 0;
  for (const auto& batches : micro_steps) {
    for (const Batch& batch : batches) {
      rows += batch.images.size(0);
      report.faults.insert(report.faults.end(), batch.faults.begin(), batch.faults.end());
      report.remarks.insert(report.remarks.end(), batch.remarks.begin(), batch.remarks.end());
    }
  }
  report.samples = rows / virtual_ranks().count * virtual_ranks().total;
  return report;
}

Trainer::Losses Trainer::make_gradients(const std::vector<MicroBatches>& micro_steps,
                                        const AccumulationSlot& slot, StepReport& report) {
  if (parts_.training_step) return step_manually(micro_steps, slot, report);
  if (!slot.last) {
    const auto hold = ddp().no_sync();
    return forward_backward(micro_steps.front(), slot, report);
  }
  auto losses = forward_backward(micro_steps.front(), slot, report);
  report.timings = ddp().timings();
  return losses;
}

/// `micro_steps`: one, or with training_step those of the whole optimizer step.
StepReport Trainer::take_step(const std::vector<MicroBatches>& micro_steps) {
  const bool manual = static_cast<bool>(parts_.training_step);
  auto slot = slot_of_step();
  slot.last = slot.last || manual;
  StepReport report = report_before(micro_steps);
  for (auto& callback : callbacks_) callback->before_step(*this, report);
  keep_buffers(slot);
  const double inner_begin_s = inner_time_->seconds();
  const Losses losses = make_gradients(micro_steps, slot, report);
  kept_statistics_.restore();
  const auto& timings = report.timings;
  const double reduced_ms = timings.comm_exposed + timings.buffers + timings.buffer_average;
  const double together_s =
      reduced_ms / 1000 + inner_time_->seconds() - inner_begin_s + waited_for_data_s_;
  const bool own_overflow = !manual && slot.last && gradients_overflow(*trained_.front());
  const bool agreed_overflow = agree(losses, own_overflow, together_s, report);
  const bool overflow = manual ? !report.skipped.empty() : agreed_overflow;
  const bool dropped = manual ? report.dropped : agreed_overflow;
  if (slot.last && !dropped) {
    if (!manual) report.grad_norm = update(report.lr);
    count_update();
  }
  if (slot.last && dropped) drop_update(slot);
  if (slot.last) end_step(overflow, report);
  // With parallel.global_batch the number of micro-steps depends on that of the ranks.
  const bool averages = slot.last || config().parallel.global_batch == 0;
  if (parts_.ema && averages && !dropped) {
    if (parts_.masters) parts_.masters->collect_buffers();
    parts_.ema->update();
  }
  count_samples(report);
  report.updated = slot.last && !dropped;
  report.dropped = slot.last && dropped;
  report.loss_scale = state_.loss_scale;
  report.step_in_epoch = state_.batch_in_epoch;
  report.optimizer_steps = state_.step;
  return report;
}

void Trainer::count_samples(const StepReport& report) {
  add_loss(state_, {report.loss, report.micro_steps, report.items});
  state_.batch_in_epoch += report.micro_steps;
  state_.schedule_step += report.micro_steps;
  state_.samples += report.samples;
  state_.epoch_samples += report.samples;
}

/// Returns the batch of this virtual rank on the device; its generator is seeded.
Batch Trainer::begin_virtual_rank(const MicroBatches& batches, const Turn& turn) {
  constexpr uint64_t kApart = 0x9E3779B97F4A7C15;  // phases draw other numbers
  Batch batch = batches[static_cast<size_t>(turn.virtual_rank - virtual_ranks().first)];
  batch.move_to(device_);
  const int64_t micro_step = state_.schedule_step + state_.dropped_batches + turn.micro_step;
  const auto seed = static_cast<uint64_t>(config().system.seed) + turn.phase * kApart;
  seed_virtual_rank(seed, micro_step, turn.virtual_rank, device_);
  return batch;
}

/// A micro-step is weighted by its share of the optimizer step's samples: the last one may have
/// fewer. Returns the inverse of that of `batch`.
double Trainer::parts_of_step(const AccumulationSlot& slot, const Batch& batch) const {
  if (slot.size == 1) return 1;
  const int64_t size = config().train.loader.batch_size;
  const int64_t end = std::min((slot.first + slot.size) * size, part_.samples_a_virtual_rank);
  const auto samples = static_cast<double>(end - slot.first * size);
  return samples / static_cast<double>(batch.images.size(0));
}

/// For each virtual rank of this rank its items as a multiple of the mean over all virtual ranks;
/// empty without ItemCount. Collective with one. The first micro-step that has items gives the unit
/// of the gradients, because the numbers of later ones are not known yet: see update(). Gradients
/// before it are zero.
std::vector<double> Trainer::item_shares(const MicroBatches& batches, const AccumulationSlot& slot,
                                         StepReport& report) {
  const auto* own = std::get_if<OwnLoss>(&config().loss);
  if (own == nullptr || !own->make.num_items) return {};
  std::vector<double> items;
  double sum = 0;  // whole numbers: exact in any order
  for (const Batch& batch : batches) {
    const int64_t count =
        call_with_context([&] { return own->make.num_items(batch); },
                          [&] { return fmt::format("loss: '{}' failed in num_items", own->name); });
    if (count < 0) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("loss: '{}' counts {} items in a batch, not 0 or more", own->name, count));
    }
    items.push_back(static_cast<double>(count));
    sum += items.back();
  }
  const auto begin = std::chrono::steady_clock::now();
  group().all_reduce(&sum, 1, DType::kFloat64, ReduceOp::kSum).wait();
  inner_time_->add(std::chrono::steady_clock::now() - begin);
  if (begins_step(slot)) items_ = {};
  if (items_.of_all == 0 && sum > 0) items_.unit = sum * static_cast<double>(slot.size);
  report.items = sum;
  items_.of_last = std::max(sum, 1.0);
  items_.of_all += sum;
  for (double& count : items) count = count * virtual_ranks().total / items_.of_last;
  return items;
}

Trainer::Losses Trainer::forward_backward(const MicroBatches& batches, const AccumulationSlot& slot,
                                          StepReport& report) {
  Losses losses;
  losses.logged.resize(value_names_.size());
  const auto shares = item_shares(batches, slot, report);
  ddp().for_each_virtual_rank([&](int virtual_rank) {
    const Batch batch = begin_virtual_rank(batches, {virtual_rank});
    const auto outputs =
        forward_at(config().system.amp_level, batch.inputs(), [&](const Tensors& inputs) {
          return ddp().forward([&] {
            try {
              return model().compute(inputs);
            } catch (const c10::Error& error) {
              explain(error, batch.images.size(0));
            }
          });
        });
    std::vector<at::Tensor> logged;
    const auto loss = [&] {
      const LoggedValues taker(value_names_, logged);
      return parts_.task.loss_of(batch, outputs);
    }();
    if (!loss.requires_grad()) report_no_gradient(config().loss);
    const double share = shares.empty() ? 1 : shares[losses.losses.size()];
    const double parts =
        shares.empty() ? parts_of_step(slot, batch) : items_.unit / (items_.of_last * share);
    const auto of_step = parts == 1 ? loss : loss / parts;
    (loss_scale() == 1 ? of_step : of_step * loss_scale()).backward();
    const auto numbers = numbers_on_host(loss, logged);
    losses.losses.push_back(numbers[0] * share);
    for (size_t i = 1; i < numbers.size(); ++i) losses.logged[i - 1].push_back(numbers[i] * share);
  });
  if (!shares.empty()) losses.bad_without_items = bad_only_without_items(losses.losses, shares);
  return losses;
}

/// For a step that may be dropped because its loss is not finite: its running statistics may then
/// not be finite either. With training_step each call of optimize() does it.
void Trainer::keep_buffers(const AccumulationSlot& slot) {
  if (!drops_overflows(config()) || !begins_step(slot) || parts_.training_step) return;
  buffers_.clear();
  for (const auto& buffer : parts_.model->buffers()) buffers_.push_back(buffer.detach().clone());
}

bool Trainer::gradients_overflow(const TrainedPart& part) const {
  return state_.loss_scale && !all_finite(gradients_of(part.ddp.parameters()));
}

/// Returns the norm of the gradients before clipping.
std::optional<double> Trainer::update(double lr) {
  std::optional<double> norm;
  if (parts_.masters) parts_.masters->take_gradients();
  auto& trained = *trained_.front();
  const double units = std::max(items_.of_all, 1.0) / items_.unit;
  unscale(gradients_of(trained.parameters), loss_scale() * units);
  for (auto& callback : callbacks_) callback->before_update(*this);
  if (config().train.clip_grad) norm = clip_gradients(trained.parameters, config().train.clip_norm);
  trained.rates.set(lr);
  trained.optimizer.step();
  if (parts_.masters) parts_.masters->publish();
  return norm;
}

void Trainer::count_update() {
  ++state_.step;
  state_.metric_value.reset();  // these weights have not been evaluated
  if (state_.step == config().train.max_steps) stop_ = StopReason::kMaxSteps;
}

/// Of an optimizer step, or with several optimizers of any update in it: a part that never trains
/// has diverged too.
void Trainer::count_overflow(bool overflow, const std::vector<std::string>& parts) {
  drops_in_a_row_ = overflow ? drops_in_a_row_ + 1 : 0;
  auto& all = parts_in_a_row_;
  if (!overflow) all.clear();
  for (const auto& part : parts) {
    if (std::find(all.begin(), all.end(), part) == all.end()) all.push_back(part);
  }
  if (drops_in_a_row_ < kMaxDropsInARow) return;
  throw Error(
      ErrorCode::kDiverged,
      fmt::format("epoch: {} step: {}. Loss or gradients{} overflowed in {} optimizer steps "
                  "in a row, the loss scale is {}. Try a smaller scheduler.lr",
                  state_.epoch + 1, state_.batch_in_epoch + 1,
                  all.empty() ? "" : " of " + name_list(all), kMaxDropsInARow, loss_scale()));
}

void Trainer::report_overflow(const std::string& part) const {
  throw Error(ErrorCode::kDiverged,
              fmt::format("epoch: {} step: {}. Gradients{} overflow with a loss scale of {}. With "
                          "system.drop_overflow_update=True such a step is left out",
                          state_.epoch + 1, state_.batch_in_epoch + 1,
                          part.empty() ? "" : fmt::format(" of '{}'", part), loss_scale()));
}

void Trainer::drop_update(const AccumulationSlot& slot) {
  if (!drops_overflows(config())) report_overflow();
  if (bad_loss_ && !parts_.training_step) {
    const at::NoGradGuard no_grad;
    const auto buffers = parts_.model->buffers();
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(buffers_[i]);
  }
  state_.dropped_batches += slot.size;
  state_.schedule_step -= slot.size;
}

void Trainer::end_step(bool overflow, const StepReport& report) {
  bad_loss_ = false;
  count_overflow(overflow, report.skipped);
  zero_grad();
  const std::string note = waits_note();
  report_step({.step = state_.step,
               .total = total_steps_,
               .loss = report.loss,
               .note = note,
               .epoch = static_cast<int32_t>(state_.epoch + 1),
               .num_epochs = static_cast<int32_t>(config().scheduler.num_epochs)});
  if (state_.loss_scale) {
    const auto options = config().loss_scaler.value_or(LossScalerConfig()).options();
    state_.loss_scale = next_loss_scale(*state_.loss_scale, overflow, options);
  }
  if (pending_stop_) stop_ = *pending_stop_;
}

}  // namespace lockstep::inline internal
