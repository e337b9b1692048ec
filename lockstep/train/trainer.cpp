#include "lockstep/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lockstep/base/counted.h"
#include "lockstep/error.h"
#include "lockstep/evaluation.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/sync_batch_norm_layers.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/sync_batch_norm.h"
#include "lockstep/train/disk_work.h"
#include "lockstep/train/epoch_loss.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run_summary.h"

namespace lockstep::inline internal {
namespace {

using Clock = std::chrono::steady_clock;

/// Decay per step of the average over the last steps, of which some twenty count.
constexpr double kWaitsKept = 0.95;

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
  options.virtual_ranks = static_cast<int>(config.virtual_ranks);
  options.measure_wait = config.measure_wait;
  return options;
}

void synchronise_batch_norm(Model& model, const ProcessGroup& group,
                            std::shared_ptr<CollectiveTime> time) {
  if (convert_sync_batchnorm(model, group, std::move(time)) > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "parallel.sync_bn is True, but the network has no batch norm layer");
}

/// What the optimizer changes, each tensor once: the masters of O2 and O3, or the network's own.
std::vector<at::Tensor> stepped_parameters(const TrainerParts& parts,
                                           const DistributedDataParallel<CalledModule>& ddp) {
  if (!parts.masters) return ddp.parameters();
  std::vector<at::Tensor> tensors;
  for (const auto& master : parameters_of(parts.masters->module())) {
    tensors.push_back(master.tensor);
  }
  return tensors;
}

void add_step(EpochReport& epoch, const StepReport& step) {
  epoch.steps += step.micro_steps;
  epoch.data_wait_s += step.data_wait_s;
  epoch.waits.add(step.waits, step.step_s);
  epoch.faults += step.faults_of_all;
  epoch.remarks += step.remarks_of_all;
}

}  // namespace

Trainer::TrainedPart::TrainedPart(std::string name_of_part,
                                  std::shared_ptr<torch::nn::Module> module,
                                  torch::optim::Optimizer& its_optimizer, const TrainerParts& parts)
    : name(std::move(name_of_part)),
      ddp(CalledModule(std::move(module)), parts.group, ddp_options(parts.config.parallel)),
      optimizer(its_optimizer),
      parameters(stepped_parameters(parts, ddp)),
      rates(its_optimizer, parts.config.scheduler.lr) {}

std::vector<std::unique_ptr<Trainer::TrainedPart>> Trainer::make_trained(
    const TrainerParts& parts) {
  std::vector<std::unique_ptr<TrainedPart>> trained;
  for (const auto& part : parts.optimized) {
    trained.push_back(
        std::make_unique<TrainedPart>(part.name, part.module, *part.optimizer, parts));
  }
  if (trained.empty()) {
    trained.push_back(std::make_unique<TrainedPart>("", parts.model, parts.optimizer, parts));
  }
  return trained;
}

void Trainer::zero_grad() {
  for (auto& part : trained_) part->ddp.zero_grad();
}

Trainer::Trainer(TrainerParts parts, TrainingState state, const CommHookState& averaging)
    : parts_(std::move(parts)),
      state_(std::move(state)),
      trained_(make_trained(parts_)),
      averaging_note_(ddp().load_comm_hook_state(averaging)),
      kept_statistics_(parts_.config.optimizer, *parts_.model),
      device_(parts_.model->device()),
      samples_a_virtual_rank_(parts_.samplers.front().num_samples()),
      rate_factor_(rate_factor(parts_.config.parallel,
                               global_batch(parts_.config.train, virtual_ranks().total))),
      steps_per_epoch_(micro_steps(samples_a_virtual_rank_, 0)) {
  if (!parts_.training_step) value_names_ = task().log_names();
  value_names_.insert(value_names_.end(), parts_.log_names.begin(), parts_.log_names.end());
  if (parts_.masters) make_masters_equal();
  if (config().parallel.sync_bn) synchronise_batch_norm(*parts_.model, parts_.group, inner_time_);
  if (config().system.val_while_train) {
    check_main_indicator(config().metric.main_indicator, task().metric_names());
  }
  begin_watching();
  require_batch(steps_per_epoch_, samples_a_virtual_rank_, config());
  take_up(TrainingState(state_));
  const bool watches = config().loss_scaler || config().system.drop_overflow_update;
  if (watches) {
    const auto options = config().loss_scaler.value_or(LossScalerConfig()).options();
    state_.loss_scale = first_loss_scale(options, state_.loss_scale);
  } else {
    state_.loss_scale.reset();
  }
  state_.world_size = num_ranks();
  together_ = Clock::now();
}

/// Of an epoch behind its first `taken` samples, which leave so many for each virtual rank.
int64_t Trainer::micro_steps(int64_t samples_a_virtual_rank, int64_t taken) const {
  const int64_t count = virtual_ranks().count;
  const int64_t batches = parts_.loader.num_batches(samples_a_virtual_rank * count);
  return micro_steps_of(batches / count, dataset_size() - taken, config(), virtual_ranks().total);
}

/// Converts the epoch of `saved` to this run's steps.
void Trainer::take_up(const TrainingState& saved) {
  const auto& sampler = parts_.samplers.front();
  check_resumable(saved, sampler.dataset_size());
  const int64_t rest = sampler.num_samples(saved.epoch_samples);
  part_.padding = more_padding(samples_a_virtual_rank_, rest, config().train.loader);
  part_.samples_a_virtual_rank = rest + part_.padding;
  const int64_t left = micro_steps(part_.samples_a_virtual_rank, saved.epoch_samples);
  const EpochShape shape{virtual_ranks().total, steps_per_epoch_, left, sampler.dataset_size()};
  if (recount(state_, shape) && saved.epoch_samples > 0) {
    const char* const who = config().parallel.virtual_ranks > 0 ? "virtual rank" : "rank";
    dealing_note_ = fmt::format(
        "{} of {} samples of epoch {} were used by {}; the rest is dealt to {} in {}, and an "
        "epoch's steps are counted for {} from here: [{}/{}] are done",
        saved.epoch_samples, sampler.dataset_size(), saved.epoch + 1,
        counted(saved.virtual_ranks, who), virtual_ranks().total, counted(left, "step"),
        counted(virtual_ranks().total, who), state_.batch_in_epoch, steps_per_epoch_);
  }
  part_.first_batch = state_.batch_in_epoch;
  const int64_t later_epochs = config().scheduler.num_epochs - state_.epoch - 1;
  total_steps_ =
      all_optimizer_steps({state_.step, left, later_epochs, steps_per_epoch_}, config().train);
}

bool Trainer::has_steps_left() const {
  const int64_t max_steps = config().train.max_steps;
  return state_.epoch < config().scheduler.num_epochs &&
         (max_steps == 0 || state_.step < max_steps) && !stopped_early();
}

bool Trainer::finished() const {
  return stop_ != StopReason::kEpochsDone || state_.epoch >= config().scheduler.num_epochs;
}

StopReason Trainer::fit() {
  const int64_t max_steps = config().train.max_steps;
  if (max_steps > 0 && state_.step >= max_steps) stop_ = StopReason::kMaxSteps;
  if (stopped_early()) stop_ = StopReason::kEarlyStopping;
  for (auto& callback : callbacks_) callback->on_start(*this);
  for (auto& callback : callbacks_) callback->on_begin(*this);
  while (!finished()) run_epoch();
  for (auto& callback : callbacks_) callback->on_end(*this);
  if (stop_ == StopReason::kSigterm) ask_whether_job_goes_on();
  for (auto& callback : callbacks_) callback->on_close(*this);
  for (auto& callback : callbacks_) callback->on_closed(*this);
  return stop_;
}

void Trainer::run_epoch() {
  EpochReport report{.epoch = state_.epoch + 1, .earlier_s = state_.epoch_seconds};
  for (auto& callback : callbacks_) callback->on_epoch_begin(*this, report.epoch);
  parts_.model->train();
  kept_statistics_.hold();
  zero_grad();
  parts_.loader.start(state_.epoch, remaining_order());
  all_have_data_ = false;
  read_ahead();
  const auto begin = Clock::now();
  while (!finished()) {
    const auto step_begin = Clock::now();
    const double waited = parts_.loader.wait_seconds();
    const auto micro_steps = next_micro_steps();
    if (micro_steps.empty()) break;
    StepReport step = take_step(micro_steps);
    step.data_wait_s = parts_.loader.wait_seconds() - waited;
    step.step_s = seconds_since(step_begin);
    recent_waits_.fade(kWaitsKept);
    recent_waits_.add(step.waits, step.step_s);
    add_step(report, step);
    state_.epoch_seconds = report.earlier_s + seconds_since(begin);
    for (auto& callback : callbacks_) callback->on_step(*this, step);
  }
  report.seconds = seconds_since(begin);
  if (state_.batch_in_epoch < steps_per_epoch_) return;  // stopped within the epoch
  report.loss = mean_loss(state_);
  report.items = state_.epoch_items;
  ++state_.epoch;
  state_.batch_in_epoch = state_.epoch_samples = 0;
  state_.dealt_anew = false;
  state_.epoch_loss = state_.epoch_seconds = 0;
  state_.epoch_items.reset();
  part_ = {0, samples_a_virtual_rank_, 0};
  for (auto& callback : callbacks_) callback->on_epoch(*this, report);
}

/// Those of one call of take_step(). Only of the first one the ranks know whether all have it.
std::vector<Trainer::MicroBatches> Trainer::next_micro_steps() {
  const int64_t count = parts_.training_step ? std::max<int64_t>(1, slot_of_step().size) : 1;
  std::vector<MicroBatches> micro_steps;
  double waited_s = 0;
  while (std::ssize(micro_steps) < count) {
    auto batches = next_micro_step();
    waited_s += waited_for_data_s_;
    all_have_data_ = false;
    if (batches.empty()) break;
    micro_steps.push_back(std::move(batches));
  }
  waited_for_data_s_ = waited_s;
  return micro_steps;
}

/// None at the end of the epoch.
Trainer::MicroBatches Trainer::read_micro_step() {
  MicroBatches batches;
  while (std::ssize(batches) < virtual_ranks().count) {
    auto batch = parts_.loader.next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  return batches;
}

/// If a rank does not have its batches yet, the others are informed that it waits for its disk.
Trainer::MicroBatches Trainer::next_micro_step() {
  waited_for_data_s_ = 0;
  if (all_have_data_) return read_micro_step();
  const auto begin = Clock::now();
  double own_s = 0;
  MicroBatches batches;
  do_disk_work(group(), "a batch of the training data is read",
               std::chrono::seconds(config().train.disk_timeout_s), [&] {
                 batches = read_micro_step();
                 own_s = seconds_since(begin);
               });
  waited_for_data_s_ = seconds_since(begin) - own_s;
  return batches;
}

/// This epoch's remaining samples of this rank, without those taken before a resume.
EpochOrder Trainer::remaining_order() {
  auto told = std::exchange(next_order_, std::nullopt);
  return told ? std::move(*told) : dealt(state_.epoch, state_.epoch_samples, part_.padding);
}

EpochOrder Trainer::dealt(int64_t epoch, int64_t taken, int64_t padding) {
  std::vector<std::vector<int64_t>> samples, keys;
  for (auto& sampler : parts_.samplers) {
    sampler.set_epoch(epoch);
    samples.push_back(sampler.indices(taken, padding));
    if (parts_.with_replacement) keys.push_back(sampler.places(taken, padding));
  }
  const auto& loader = config().train.loader;
  EpochOrder order{lay_in_turn(samples, loader.batch_size), lay_in_turn(keys, loader.batch_size)};
  if (loader.drop_remainder) {
    const int64_t steps = micro_steps(std::ssize(order.samples) / virtual_ranks().count, taken);
    const auto left = static_cast<size_t>(steps * loader.batch_size * virtual_ranks().count);
    order.samples.resize(left);
    if (parts_.with_replacement) order.keys.resize(left);
  }
  return order;
}

/// If another epoch follows, its first batches are made during the last steps of this one.
void Trainer::read_ahead() {
  const int64_t left = steps_per_epoch_ - state_.batch_in_epoch;
  const int64_t updates = optimizer_steps_of(left, config().train);
  const int64_t max_steps = config().train.max_steps;
  const bool is_last = state_.epoch + 1 >= config().scheduler.num_epochs ||
                       (max_steps > 0 && state_.step + updates >= max_steps);
  if (is_last) return;
  next_order_ = dealt(state_.epoch + 1, 0, 0);
  parts_.loader.follow(state_.epoch + 1, *next_order_);
}

/// The model already holds rank 0's values, rounded.
void Trainer::make_masters_equal() {
  if (num_ranks() == 1) return;
  auto& masters = parts_.masters->module();
  broadcast_values(group(), parameters_of(masters));
  broadcast_buffers(group(), masters);
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

void Trainer::report_evaluated(const EvalState& state) {
  for (auto& callback : callbacks_) callback->on_evaluated(*this, state);
}

void Trainer::report_fault(const std::string& line) {
  for (auto& callback : callbacks_) callback->on_fault(*this, line);
}

void Trainer::saved(const SavedCheckpoint& checkpoint) {
  for (auto& callback : callbacks_) callback->on_saved(*this, checkpoint);
}

void Trainer::evaluation_failed(const std::string& why) {
  for (auto& callback : callbacks_) callback->on_evaluation_failed(*this, why);
}

void Trainer::evaluates() {
  for (auto& callback : callbacks_) callback->before_evaluation(*this);
}

void Trainer::evaluated(const EvalResult& result) {
  watch(result);
  for (auto& callback : callbacks_) callback->on_evaluation(*this, result);
}

}  // namespace lockstep::inline internal
