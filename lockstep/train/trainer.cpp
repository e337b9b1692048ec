#include "lockstep/train/trainer.h"

#include <algorithm>
#include <chrono>

#include "lockstep/base/error.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/resume.h"

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
  options.measure_wait = config.measure_wait;
  return options;
}

void synchronise_batch_norm(Model& model, const ProcessGroup& group) {
  if (convert_sync_batchnorm(model, group) > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "parallel.sync_bn is True, but the network has no batch norm layer");
}

void add_step(EpochReport& epoch, const StepReport& step) {
  ++epoch.steps;
  epoch.data_wait_s += step.data_wait_s;
  epoch.comm_exposed_s += step.timings.comm_exposed / 1000;
  epoch.faults += step.faults_of_all;
  epoch.remarks += step.remarks_of_all;
}

}  // namespace

Trainer::Trainer(TrainerParts parts, TrainingState state, const AveragingState& averaging)
    : parts_(std::move(parts)),
      state_(std::move(state)),
      ddp_(parts_.model, parts_.group, ddp_options(parts_.config.parallel)),
      averaging_note_(ddp_.load_averaging_state(averaging)),
      parameters_(parts_.masters ? parts_.masters->module().parameters() : ddp_.parameters()),
      device_(parts_.model->device()),
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
  for (auto& callback : callbacks_) callback->on_begin(*this);
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

/// The model's values are rank 0's by now, rounded.
void Trainer::make_masters_equal() {
  if (num_ranks() == 1) return;
  auto& masters = parts_.masters->module();
  broadcast_values(group(), parameters_of(masters));
  broadcast_values(group(), buffers_of(masters));
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
