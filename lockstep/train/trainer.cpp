#include "lockstep/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>

#include "lockstep/amp/autocast.h"
#include "lockstep/amp/gradients.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/progress.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/train/optim/clip.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/schedule/schedule.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

DdpOptions ddp_options(const ParallelConfig& config) {
  DdpOptions options;
  options.bucket_cap_mb = config.bucket_cap_mb;
  options.broadcast_buffers = config.broadcast_buffers;
  options.find_unused_parameters = config.find_unused_parameters;
  options.static_graph = config.static_graph;
  options.comm_hook = make_comm_hook(config.comm_hook);
  options.shards = static_cast<int>(config.shards);
  return options;
}

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

void synchronise_batch_norm(Model& model, const ProcessGroup& group) {
  if (convert_sync_batchnorm(model, group) > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "parallel.sync_bn is True, but the network has no batch norm layer");
}

void add_step(EpochReport& epoch, const StepReport& step) {
  ++epoch.steps;
  epoch.data_wait_s += step.data_wait_s;
  epoch.comm_exposed_s += step.comm_exposed_s;
  epoch.faults += step.faults_of_all;
  epoch.remarks += step.remarks_of_all;
}

}  // namespace

AccumulationSlot accumulation_slot(int64_t index, int64_t steps_per_epoch, int64_t accumulation) {
  const int64_t first = index / accumulation * accumulation;
  const int64_t size = std::min(accumulation, steps_per_epoch - first);
  return {first, size, index == first + size - 1};
}

Trainer::Trainer(TrainerParts parts, TrainingState state, const AveragingState& averaging)
    : parts_(std::move(parts)),
      state_(std::move(state)),
      ddp_(parts_.model, parts_.group, ddp_options(parts_.config.parallel)),
      averaging_note_(ddp_.load_averaging_state(averaging)),
      parameters_(parts_.masters ? parts_.masters->module().parameters() : ddp_.parameters()),
      samples_a_shard_(parts_.samplers.front().num_samples()),
      steps_per_epoch_(parts_.loader.num_batches(samples_a_shard_ * shards().count)) {
  if (parts_.masters) make_masters_equal();
  if (config().parallel.sync_bn) synchronise_batch_norm(*parts_.model, parts_.group);
  require_batch(steps_per_epoch_, samples_a_shard_, config().train.loader.batch_size);
  check_resumable(state_, config(), shards().total, steps_per_epoch_);
  state_.schedule_step =
      state_.epoch * steps_per_epoch_ + state_.batch_in_epoch - state_.dropped_batches;
  const bool watches = config().loss_scaler || config().system.drop_overflow_update;
  if (watches) {
    const auto options = config().loss_scaler.value_or(LossScalerConfig()).options();
    state_.loss_scale = first_loss_scale(options, state_.loss_scale);
  } else {
    state_.loss_scale.reset();
  }
  state_.world_size = num_ranks();
  state_.shards = shards().total;
}

int64_t Trainer::total_steps() const {
  const int64_t accumulation = config().train.gradient_accumulation_steps;
  const int64_t an_epoch = (steps_per_epoch_ + accumulation - 1) / accumulation;
  const int64_t all = an_epoch * config().scheduler.num_epochs;
  return config().train.max_steps > 0 ? std::min(all, config().train.max_steps) : all;
}

bool Trainer::finished() const {
  return stop_ != StopReason::kEpochsDone || state_.epoch >= config().scheduler.num_epochs;
}

StopReason Trainer::fit() {
  const int64_t max_steps = config().train.max_steps;
  if (max_steps > 0 && state_.step >= max_steps) stop_ = StopReason::kMaxSteps;
  for (auto& callback : callbacks_) callback->on_start(*this);
  while (!finished()) run_epoch();
  for (auto& callback : callbacks_) callback->on_end(*this);
  return stop_;
}

void Trainer::run_epoch() {
  EpochReport report{.epoch = state_.epoch + 1};
  ddp_.train();
  ddp_.zero_grad();
  for (auto& sampler : parts_.samplers) sampler.set_epoch(state_.epoch);
  parts_.loader.start(state_.epoch, remaining_order());
  const auto begin = Clock::now();
  while (!finished()) {
    const auto step_begin = Clock::now();
    const double waited = parts_.loader.wait_seconds();
    const auto batch = parts_.loader.next();
    if (!batch) break;
    StepReport step = micro_step(*batch);
    step.data_wait_s = parts_.loader.wait_seconds() - waited;
    step.step_s = seconds_since(step_begin);
    add_step(report, step);
    for (auto& callback : callbacks_) callback->on_step(*this, step);
  }
  report.seconds = seconds_since(begin);
  if (state_.batch_in_epoch < steps_per_epoch_) return;  // stopped within the epoch
  report.loss = state_.epoch_loss / static_cast<double>(steps_per_epoch_);
  ++state_.epoch;
  state_.batch_in_epoch = state_.epoch_samples = 0;
  state_.epoch_loss = 0;
  for (auto& callback : callbacks_) callback->on_epoch(*this, report);
}

/// This epoch's samples of this rank, without those that were taken before a resume.
std::vector<int64_t> Trainer::remaining_order() const {
  const int64_t batch = config().train.loader.batch_size;
  std::vector<std::vector<int64_t>> orders;
  for (const auto& sampler : parts_.samplers) {
    auto& order = orders.emplace_back(sampler.indices());
    const int64_t taken = state_.batch_in_epoch * batch;
    order.erase(order.begin(), order.begin() + std::min<int64_t>(taken, std::ssize(order)));
  }
  return lay_in_turn(orders, batch);
}

StepReport Trainer::micro_step(const Batch& batch) {
  const auto slot = accumulation_slot(state_.batch_in_epoch, steps_per_epoch_,
                                      config().train.gradient_accumulation_steps);
  StepReport report{.epoch = state_.epoch + 1, .steps_per_epoch = steps_per_epoch_};
  std::vector<double> losses;
  if (slot.last) {
    losses = forward_backward(batch, slot);
    report.comm_exposed_s = ddp_.comm_exposed_ms() / 1000;
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
    const Batch part = part_of(batch, shard - shards().first, shards().count);
    const int64_t micro_step = state_.schedule_step + state_.dropped_batches;
    seed_shard(static_cast<uint64_t>(config().system.seed), micro_step, shard);
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

/// One small reduction a micro-step: the mean loss, and which signals, overflows and faults came
/// anywhere.
Trainer::Agreed Trainer::agree(std::span<const double> losses, bool overflow, const Batch& batch) {
  const double loss = tree_sum(losses);
  const int signal = parts_.pending_signal();
  std::array<double, 6> sums = {loss,
                                signal == SIGTERM ? 1.0 : 0.0,
                                signal == SIGINT ? 1.0 : 0.0,
                                overflow ? 1.0 : 0.0,
                                static_cast<double>(batch.faults.size()),
                                static_cast<double>(batch.remarks.size())};
  group().all_reduce(sums.data(), sums.size(), DType::kFloat64, ReduceOp::kSum).wait();
  if (!std::isfinite(sums[0])) report_divergence(loss);
  if (sums[1] > 0) pending_stop_ = StopReason::kSigterm;
  if (sums[2] > 0) pending_stop_ = StopReason::kSigint;
  return {sums[0] / shards().total, sums[3] > 0, static_cast<int64_t>(sums[4]),
          static_cast<int64_t>(sums[5])};
}

void Trainer::stop_if_signalled() {
  const int signal = parts_.pending_signal();
  std::array<int32_t, 2> came = {signal == SIGTERM, signal == SIGINT};
  group().all_reduce(came.data(), came.size(), DType::kInt32, ReduceOp::kSum).wait();
  if (came[0] > 0) stop_ = StopReason::kSigterm;
  if (came[1] > 0) stop_ = StopReason::kSigint;
}

void Trainer::report_divergence(double own_loss) {
  std::vector<double> losses(static_cast<size_t>(num_ranks()));
  group().all_gather(&own_loss, losses.data(), 1, DType::kFloat64).wait();
  std::vector<int> ranks;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (!std::isfinite(losses[static_cast<size_t>(rank)])) ranks.push_back(rank);
  }
  throw Error(ErrorCode::kDiverged,
              fmt::format("epoch: {} step: {}. Invalid loss, terminating training: it is not a "
                          "finite number on rank {}. Try a smaller scheduler.lr or "
                          "train.clip_grad=True",
                          state_.epoch + 1, state_.batch_in_epoch + 1, rank_list(ranks)));
}

/// The model's values are rank 0's by now, rounded.
void Trainer::make_masters_equal() {
  if (num_ranks() == 1) return;
  auto& masters = parts_.masters->module();
  broadcast_values(group(), parameters_of(masters));
  broadcast_values(group(), buffers_of(masters));
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

torch::nn::Module& Trainer::weights() {
  if (!parts_.masters) return *parts_.model;
  if (!parts_.ema || !parts_.ema->swapped()) parts_.masters->collect_buffers();
  return parts_.masters->module();
}

void Trainer::swap_average() {
  if (!parts_.ema) return;
  if (parts_.masters && !parts_.ema->swapped()) parts_.masters->collect_buffers();
  parts_.ema->swap();
  if (parts_.masters) parts_.masters->publish_all();
}

void Trainer::report_fault(const std::string& line) {
  for (auto& callback : callbacks_) callback->on_fault(*this, line);
}

void Trainer::evaluated(const EvalResult& result) {
  for (auto& callback : callbacks_) callback->on_evaluation(*this, result);
}

}  // namespace lockstep
