#pragma once
// A network and a data set that train in milliseconds, and a run of them on rank threads.

#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <mutex>

#include "lockstep/data/batches.h"
#include "lockstep/error.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/task.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/train/trainer.h"
#include "tests/support/ranks.h"

namespace lockstep::inline internal {

constexpr int64_t kTinyClasses = 10;

/// (N, 3, 4, 4) -> (N, 10).
class TinyModel final : public Model {
 public:
  explicit TinyModel(bool with_norm) : with_norm_(with_norm) {
    first = register_module("first", torch::nn::Linear(48, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    last = register_module("last", torch::nn::Linear(16, kTinyClasses));
  }
  at::Tensor forward(at::Tensor input) override {
    const bool spoiled = calls_ + 1 == spoiled_call;
    if (spoiled) input = input * std::numeric_limits<float>::quiet_NaN();
    auto x = first->forward(input.flatten(1));
    if (with_norm_) x = norm->forward(x);
    // Every parameter takes part, even if the norm is not used.
    x = last->forward(torch::relu(x)) + (norm->weight.sum() + norm->bias.sum()) * 0;
    ++calls_;
    if (overflows(calls_) && is_training()) {
      // The loss is finite, the gradients are not.
      x.register_hook(
          [](const at::Tensor& grad) { return grad * std::numeric_limits<float>::infinity(); });
    }
    return calls_ == poisoned_call ? x * std::numeric_limits<float>::quiet_NaN() : x;
  }
  Tensors compute(const Tensors& inputs) override {
    if (!by_name) return Model::compute(inputs);
    const at::Tensor& shift = inputs["shift"];
    return {{"shift", shift}, {"scores", forward(inputs["picture"]) * (1 + shift)}};
  }

  bool by_name = false;       ///< Has two inputs and two outputs.
  int64_t poisoned_call = 0;  ///< The forward (from 1) whose result is NaN.
  int64_t spoiled_call = 0;   ///< The forward that makes running statistics NaN, too.
  /// Whether a forward (from 1) in training gets infinite gradients.
  std::function<bool(int64_t call)> overflows = [](int64_t) { return false; };
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};

 private:
  bool with_norm_;
  int64_t calls_ = 0;
};

/// 24 pictures of 3 x 4 x 4, whose brightness depends on the class.
class TinyData final : public ImageDataset {
 public:
  explicit TinyData(int64_t size = 24) : size_(size), bytes_(static_cast<size_t>(size * 48)) {
    for (int64_t i = 0; i < size * 48; ++i) {
      bytes_[static_cast<size_t>(i)] =
          static_cast<uint8_t>(label(i / 48) * 20 + (i * 2654435761u >> 7) % 40);
    }
  }
  int64_t size() const override { return size_; }
  ImageShape shape() const override { return {3, 4, 4}; }
  int64_t label(int64_t index) const override { return index * 7 % kTinyClasses; }
  int64_t num_classes() const override { return kTinyClasses; }
  std::span<const uint8_t> image(int64_t index) const override {
    return {bytes_.data() + index * 48, 48};
  }

 private:
  int64_t size_;
  std::vector<uint8_t> bytes_;
};

inline Config tiny_config() {
  Config config;
  config.model.head.num_classes = kTinyClasses;
  config.scheduler.lr = 0.05;
  config.scheduler.warmup_epochs = 0;
  config.scheduler.scheduler = "polynomial_decay";
  config.scheduler.num_epochs = 4;
  config.optimizer.opt = "sgd";
  config.train.loader = {.shuffle = true, .batch_size = 4, .drop_remainder = true};
  config.parallel.timeout_s = 60;
  return config;
}

/// Passes batches on, and records the samples taken, and their keys.
class WatchedSource final : public BatchSource {
 public:
  WatchedSource(BatchSource& inner, std::map<int64_t, std::vector<int64_t>>& taken,
                std::map<int64_t, std::vector<int64_t>>& keys, std::vector<int64_t>& told)
      : inner_(inner), taken_(taken), keys_(keys), told_(told) {}
  void start(int64_t epoch, EpochOrder order, std::optional<int64_t> num_counted) override {
    if (!told_.empty() && told_.back() == epoch && next_order_ != order) {
      throw Error(ErrorCode::kInternal, "an epoch has another order than was told");
    }
    order_ = order;
    epoch_ = epoch;
    at_ = 0;
    inner_.start(epoch, std::move(order), num_counted);
  }
  void follow(int64_t epoch, EpochOrder order) override {
    told_.push_back(epoch);
    next_order_ = order;
    inner_.follow(epoch, std::move(order));
  }
  int64_t num_batches(int64_t num_samples) const override {
    return inner_.num_batches(num_samples);
  }
  std::optional<Batch> next() override {
    auto batch = inner_.next();
    for (int64_t row = 0; batch && row < batch->images.size(0); ++row, ++at_) {
      taken_[epoch_].push_back(order_.samples[at_]);
      if (!order_.keys.empty()) keys_[epoch_].push_back(order_.keys[at_]);
    }
    return batch;
  }
  bool ready(int64_t batches) const override { return inner_.ready(batches); }
  double wait_seconds() const override { return inner_.wait_seconds(); }

 private:
  BatchSource& inner_;
  std::map<int64_t, std::vector<int64_t>>& taken_;
  std::map<int64_t, std::vector<int64_t>>& keys_;
  std::vector<int64_t>& told_;
  EpochOrder next_order_;
  EpochOrder order_;
  int64_t epoch_ = 0;
  size_t at_ = 0;
};

struct TinyRun {
  std::map<int64_t, std::vector<int64_t>> taken;  ///< Samples of this rank, by epoch (from 0).
  std::map<int64_t, std::vector<int64_t>> keys;   ///< Theirs; none if each sample is its own.
  std::vector<int64_t> told_ahead;                ///< Epochs announced by follow().
  std::string dealing;                            ///< Trainer::dealing_note().
  std::vector<at::Tensor> weights;                ///< Parameters and buffers at the end.
  TensorMap average;                              ///< Of train.ema.
  std::vector<double> losses;                     ///< Of every micro-step.
  std::vector<double> lrs;
  std::vector<double> epoch_losses;
  TrainingState state;
  StopReason reason{};
};

/// Hooks of a test on each rank.
struct TinyHooks {
  bool with_norm = true;
  std::function<void(int rank, TinyModel&)> model = [](int, TinyModel&) {};
  std::function<void(int rank, TinyModel&)> move = [](int, TinyModel&) {};  ///< To a device.
  std::function<TrainingState(torch::nn::Module&, torch::optim::Optimizer&)> start{};
  std::function<CommHookState(int rank)> averaging = [](int) { return CommHookState{}; };
  std::function<std::unique_ptr<Task>(const Config&)> task = [](const Config& config) {
    return make_task(config);
  };
  std::filesystem::path ema_from{};  ///< Checkpoint with the moving average to resume from.
  std::function<void(Trainer&)> add_callbacks = [](Trainer&) {};
  std::function<std::shared_ptr<const ImageDataset>(int rank)> data = [](int) {
    return std::make_shared<const TinyData>();
  };
  /// Of the data.
  std::function<std::unique_ptr<const BatchMaker>(std::shared_ptr<const ImageDataset>)> batches =
      [](const std::shared_ptr<const ImageDataset>& images) {
        return image_batches(images, ImageTransform({Normalize{}}, images->shape(), 0));
      };
  std::chrono::seconds timeout{60};  ///< Of the group.
  std::function<int(int rank, int64_t step)> signal = [](int, int64_t) { return 0; };
  std::function<bool(int rank)> job_goes_on = [](int) { return false; };
  std::vector<std::string> log_names{};  ///< For log_value(), beside the task's.
  std::vector<double> weights{};         ///< Of the samples; none: each comes once.
};

class Recorder final : public Callback {
 public:
  explicit Recorder(TinyRun& run) : run_(run) {}
  void on_step(Trainer&, const StepReport& report) override {
    run_.losses.push_back(report.loss);
    run_.lrs.push_back(report.lr);
  }
  void on_epoch(Trainer&, const EpochReport& report) override {
    run_.epoch_losses.push_back(report.loss);
  }

 private:
  TinyRun& run_;
};

inline TinyRun run_tiny_rank(const World& world, const Config& config, const TinyHooks& hooks) {
  static std::mutex building;  // libtorch has one default generator
  auto group = ProcessGroup::create(world, {.timeout = hooks.timeout});
  std::shared_ptr<TinyModel> model;
  {
    const std::lock_guard lock(building);
    torch::manual_seed(5);
    model = std::make_shared<TinyModel>(hooks.with_norm);
  }
  hooks.model(world.rank, *model);
  hooks.move(world.rank, *model);
  freeze_parameters(config.optimizer, *model);
  const auto masters = make_masters(config.system.amp_level, *model);
  torch::nn::Module& weights = masters ? masters->module() : *model;
  const auto optimizer = make_optimizer(config.optimizer, weights, config.scheduler.lr);
  const auto data = hooks.data(world.rank);
  const VirtualRankRange virtual_ranks = virtual_ranks_of(config, world);
  std::vector<DistributedSampler> samplers;
  for (int virtual_rank = virtual_ranks.first;
       virtual_rank < virtual_ranks.first + virtual_ranks.count; ++virtual_rank) {
    SamplerOptions options{.shuffle = config.train.loader.shuffle};
    if (!hooks.weights.empty()) options.order = weighted_order(hooks.weights);
    samplers.emplace_back(data->size(), virtual_rank, virtual_ranks.total, options);
  }
  Loader images(hooks.batches(data), {.batch_size = config.train.loader.batch_size,
                                      .parts = virtual_ranks.count,
                                      .drop_remainder = config.train.loader.drop_remainder});
  TinyRun run;
  WatchedSource loader(images, run.taken, run.keys, run.told_ahead);
  TrainingState state;
  if (hooks.start) state = hooks.start(weights, *optimizer);
  if (masters) masters->publish_all();
  std::unique_ptr<Ema> ema;
  if (config.train.ema) {
    ema = std::make_unique<Ema>(weights, config.train.ema_decay);
    load_ema(hooks.ema_from, *ema);
  }
  const auto task = hooks.task(config);
  Trainer* running = nullptr;
  const auto signal = [&] { return hooks.signal(world.rank, running->state().step); };
  const auto goes_on = [&] { return hooks.job_goes_on(world.rank); };
  Trainer trainer({config,
                   world.rank,
                   world.size,
                   group,
                   model,
                   *optimizer,
                   *task,
                   loader,
                   samplers,
                   signal,
                   masters.get(),
                   ema.get(),
                   nullptr,
                   goes_on,
                   {},
                   {},
                   hooks.log_names,
                   !hooks.weights.empty()},
                  state, hooks.averaging(world.rank));
  running = &trainer;
  trainer.add(std::make_shared<Recorder>(run));
  hooks.add_callbacks(trainer);
  run.reason = trainer.fit();
  run.state = trainer.state();
  run.dealing = trainer.dealing_note();
  const torch::nn::Module& saved = trainer.weights();
  for (const auto& tensor : saved.parameters())
    run.weights.push_back(tensor.detach().cpu().clone());
  for (const auto& tensor : saved.buffers()) run.weights.push_back(tensor.cpu().clone());
  if (ema) run.average = ema->state();
  return run;
}

inline std::vector<TinyRun> run_tiny(int ranks, const Config& config, const TinyHooks& hooks = {}) {
  std::vector<TinyRun> runs(static_cast<size_t>(ranks));
  testing::run_rank_threads(ranks, [&](const World& world) {
    runs[static_cast<size_t>(world.rank)] = run_tiny_rank(world, config, hooks);
  });
  return runs;
}

/// Whether all parameters are equal bit for bit (with `count` only the first tensors, without
/// buffers).
inline bool same_weights(const TinyRun& a, const TinyRun& b, size_t count = 100) {
  for (size_t i = 0; i < std::min(count, a.weights.size()); ++i) {
    if (!a.weights[i].equal(b.weights[i])) return false;
  }
  return a.weights.size() == b.weights.size();
}
constexpr size_t kTinyParameters = 6;

}  // namespace lockstep::inline internal
