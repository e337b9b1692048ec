// Steps with several optimizers: Recipe::training_step.

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/optimized_parts.h"
#include "lockstep/train/task_parts.h"
#include "lockstep/train/trainer.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Two networks of more than 1 MiB each, so that gradients are averaged where they are computed.
struct Pair final : Model {
  torch::nn::Linear maker = register_module("maker", torch::nn::Linear(48, 6000));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(6000));
  torch::nn::Linear critic = register_module("critic", torch::nn::Linear(6000, 48));
  /// In no part, and with statistics of its own.
  torch::nn::BatchNorm1d fixed = register_module(
      "fixed", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(48).affine(false)));

  at::Tensor forward(at::Tensor input) override { return maker(input.flatten(1)); }
};

/// The pair's norm belongs to its critic.
struct Judge final : torch::nn::Module {
  Judge(torch::nn::BatchNorm1d norm, torch::nn::Linear critic) {
    register_module("norm", norm);
    register_module("critic", critic);
  }
};

std::unique_ptr<torch::optim::Optimizer> make_sgd(torch::nn::Module& module) {
  return std::make_unique<torch::optim::SGD>(module.parameters(), torch::optim::SGDOptions(0.05));
}

/// The loss, with infinite gradients if `bad`.
at::Tensor infinite_if(bool bad, const at::Tensor& loss) {
  if (bad) {
    loss.register_hook(
        [](const at::Tensor& grad) { return grad * std::numeric_limits<float>::infinity(); });
  }
  return loss;
}

struct PairRun {
  TrainingState state;
  std::vector<std::string> skipped;  ///< Parts, in any step.
  std::vector<at::Tensor> weights;   ///< Parameters and buffers.
  std::vector<std::pair<std::string, double>> logged;
  int copied = 0;
  std::string error;
};

at::Tensor judged(Pair& pair, const at::Tensor& made) {
  return pair.critic(pair.norm(made)).square().mean();
}

void judge_then_make(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  step.optimize("judge", [&](const Batch& batch) {
    // Twice through the same network, and through the other.
    const auto input = pair.fixed(batch.images.flatten(1));
    const auto gap = judged(pair, pair.maker(input)) - judged(pair, pair.maker(input * 0.5)) * 0.5;
    log_value("gap", gap);
    return gap + 1;
  });
  step.optimize("maker", [&](const Batch& batch) {
    EXPECT_FALSE(pair.critic->weight.requires_grad());
    return judged(pair, pair.maker(batch.images.flatten(1)));
  });
  EXPECT_TRUE(pair.critic->weight.requires_grad());
}

/// One batch of the first step logs nothing.
void log_all_but_one(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  int64_t calls = 0;
  step.optimize("judge", [&](const Batch& batch) {
    if (++calls > 1 || step.number() > 0) log_value("gap", at::full({}, 5));
    return judged(pair, pair.maker(batch.images.flatten(1)));
  });
  step.optimize("maker", [&](const Batch& batch) {
    return judged(pair, pair.maker(batch.images.flatten(1)));
  });
}

/// Each network once: a sum of two gradients would be computed outside the averaged memory.
void judge_once(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  for (const char* part : {"judge", "maker"}) {
    step.optimize(part, [&](const Batch& batch) {
      return judged(pair, pair.maker(batch.images.flatten(1)));
    });
  }
}

thread_local int rank_of_pair = 0;  // of this thread's run

/// One rank alone has a loss that is no number.
void make_badly(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  step.optimize("maker", [&](const Batch& batch) {
    const auto loss = pair.maker(batch.images.flatten(1)).mean();
    return rank_of_pair == 1 ? loss * std::nan("") : loss;
  });
}

/// Autocast keeps casts of weights for all threads, so that a second call of a network in a loss
/// might get another thread's. A network is called once.
void overflow_once(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  for (const char* part : {"judge", "maker"}) {
    const bool bad = step.number() == 1 && std::string(part) == "judge";
    step.optimize(part, [&](const Batch& batch) {
      return infinite_if(bad, judged(pair, pair.maker(batch.images.flatten(1))));
    });
  }
}

/// The gradients of the judge are infinite on one rank alone.
void overflow_on_one_rank(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  for (const char* part : {"judge", "maker"}) {
    const bool bad = rank_of_pair == 1 && std::string(part) == "judge";
    step.optimize(part, [&](const Batch& batch) {
      return infinite_if(bad, judged(pair, pair.maker(batch.images.flatten(1))));
    });
  }
}

/// The same for its loss.
void judge_badly(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  for (const char* part : {"judge", "maker"}) {
    const bool bad = rank_of_pair == 1 && std::string(part) == "judge";
    step.optimize(part, [&](const Batch& batch) {
      const auto loss = judged(pair, pair.maker(batch.images.flatten(1)));
      return bad ? loss * std::nan("") : loss;
    });
  }
}

using StepOfPair = void (*)(TrainingStep&);

class PairRecorder final : public Callback {
 public:
  explicit PairRecorder(PairRun& run) : run_(run) {}
  void on_step(Trainer&, const StepReport& report) override {
    run_.logged = report.logged;
    run_.skipped.insert(run_.skipped.end(), report.skipped.begin(), report.skipped.end());
    if (report.optimizer_steps > 2) run_.copied += report.timings.copied;
  }

 private:
  PairRun& run_;
};

PairRun run_pair_rank(const World& world, const Config& config, StepOfPair step) {
  static std::mutex building;
  rank_of_pair = world.rank;
  auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
  std::shared_ptr<Pair> pair;
  {
    const std::lock_guard lock(building);
    torch::manual_seed(5);
    pair = std::make_shared<Pair>();
  }
  const auto judge = std::make_shared<Judge>(pair->norm, pair->critic);
  const std::vector<OptimizedPart> parts = {{"judge", judge, make_sgd(*judge)},
                                            {"maker", pair->maker.ptr(), make_sgd(*pair->maker)}};
  const auto data = std::make_shared<const TinyData>();
  const VirtualRankRange virtual_ranks = virtual_ranks_of(config, world);
  std::vector<DistributedSampler> samplers;
  for (int i = virtual_ranks.first; i < virtual_ranks.first + virtual_ranks.count; ++i) {
    samplers.emplace_back(data->size(), i, virtual_ranks.total);
  }
  Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                {.batch_size = config.train.loader.batch_size,
                 .parts = virtual_ranks.count,
                 .drop_remainder = true});
  const auto task = make_task(config);
  PairRun run;
  TrainerParts trainer_parts{config,   world.rank,          world.size, group,
                             pair,     *parts[0].optimizer, *task,      loader,
                             samplers, [] { return 0; }};
  trainer_parts.optimized = parts;
  trainer_parts.training_step = step;
  if (step == judge_then_make || step == log_all_but_one) trainer_parts.log_names = {"gap"};
  Trainer trainer(std::move(trainer_parts), {});
  trainer.add(std::make_shared<PairRecorder>(run));
  try {
    trainer.fit();
  } catch (const Error& error) {
    run.error = error.what();
  }
  run.state = trainer.state();
  for (const auto& tensor : pair->parameters()) run.weights.push_back(tensor.detach().clone());
  for (const auto& tensor : pair->buffers()) run.weights.push_back(tensor.clone());
  return run;
}

std::vector<PairRun> run_pair(int ranks, const Config& config, StepOfPair step = judge_then_make) {
  set_threads(1);
  std::vector<PairRun> runs(static_cast<size_t>(ranks));
  testing::run_rank_threads(ranks, [&](const World& world) {
    runs[static_cast<size_t>(world.rank)] = run_pair_rank(world, config, step);
  });
  return runs;
}

Config pair_config() {
  auto config = tiny_config();
  config.scheduler.num_epochs = 2;
  config.train.loader.batch_size = 3;
  config.parallel.virtual_ranks = 4;
  return config;
}

/// Runs on two and on four ranks have the bits of `one`.
void expect_same_bits(const PairRun& one, const Config& config, StepOfPair step) {
  for (const int ranks : {2, 4}) {
    for (const auto& run : run_pair(ranks, config, step)) {
      EXPECT_EQ(run.error, "");
      ASSERT_EQ(run.weights.size(), one.weights.size());
      for (size_t i = 0; i < one.weights.size(); ++i) {
        EXPECT_TRUE(run.weights[i].equal(one.weights[i])) << "tensor " << i << " of " << ranks;
      }
      EXPECT_EQ(run.logged, one.logged);
      EXPECT_EQ(run.skipped, one.skipped);
      EXPECT_EQ(run.state.loss_scale, one.state.loss_scale);
    }
  }
}

TEST(ManualSteps, HaveTheSameBitsOnAnyRanks) {
  const auto one = run_pair(1, pair_config())[0];
  ASSERT_EQ(one.logged.size(), 3U);
  EXPECT_EQ(one.logged[0].first, "loss_judge");
  EXPECT_EQ(one.logged[1].first, "loss_maker");
  EXPECT_EQ(one.logged[2].first, "gap");
  EXPECT_TRUE(std::isfinite(one.logged[0].second));
  EXPECT_NEAR(one.logged[2].second + 1, one.logged[0].second, 1e-6);
  expect_same_bits(one, pair_config(), judge_then_make);
}

// A call without any leaves the mean as it is.
TEST(ManualSteps, ABatchWithoutANumberLeavesItsStepWithoutOne) {
  auto config = pair_config();
  config.parallel.virtual_ranks = 0;
  config.train.gradient_accumulation_steps = 2;
  const auto gap_after = [&](int64_t steps) {
    config.train.max_steps = steps;
    const auto run = run_pair(1, config, log_all_but_one)[0];
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.state.step, steps);
    return run.logged.at(2);
  };
  EXPECT_EQ(gap_after(1).first, "gap");
  EXPECT_TRUE(std::isnan(gap_after(1).second));
  EXPECT_EQ(gap_after(2).second, 5);
}

Config scaled_pair(bool dynamic = true) {
  auto config = pair_config();
  config.loss_scaler = LossScalerConfig{.dynamic = dynamic, .loss_scale = 512};
  return config;
}

TEST(ManualSteps, HaveThemInMixedPrecisionToo) {
  auto config = scaled_pair();
  config.system.amp_level = AmpLevel::kO1;
  const auto one = run_pair(1, config, overflow_once)[0];
  EXPECT_EQ(one.error, "");
  EXPECT_EQ(one.skipped, std::vector<std::string>{"judge"});
  EXPECT_EQ(one.state.step, 4);
  EXPECT_EQ(one.state.loss_scale, (LossScaleState{256, 2, 1}));
  for (const auto& tensor : one.weights) {
    EXPECT_EQ(tensor.is_floating_point(), tensor.scalar_type() == at::kFloat);
  }
  expect_same_bits(one, config, overflow_once);
  config.system.amp_level = AmpLevel::kO0;
  const auto exact = run_pair(1, config, overflow_once)[0];
  for (const size_t i : {0U, 4U}) EXPECT_FALSE(exact.weights[i].equal(one.weights[i])) << i;
}

// An epoch of three batches has optimizer steps of two and of one.
TEST(ManualSteps, HaveThemWithAccumulationToo) {
  for (const auto level : {AmpLevel::kO0, AmpLevel::kO1}) {
    auto config = scaled_pair();
    config.system.amp_level = level;
    config.train.loader.batch_size = 2;
    config.train.gradient_accumulation_steps = 2;
    const auto one = run_pair(1, config, overflow_once)[0];
    EXPECT_EQ(one.error, "");
    EXPECT_EQ(one.state.step, 4);
    EXPECT_EQ(one.state.loss_scale, (LossScaleState{256, 2, 1}));
    expect_same_bits(one, config, overflow_once);
  }
}

// A power of two changes exponents alone.
TEST(ManualSteps, AScaleLeavesTheBits) {
  for (const bool clips : {false, true}) {
    auto plain = pair_config(), scaled = scaled_pair(false);
    plain.train.clip_grad = scaled.train.clip_grad = clips;
    plain.train.clip_norm = scaled.train.clip_norm = 0.01;
    const auto one = run_pair(1, plain)[0], other = run_pair(1, scaled)[0];
    for (size_t i = 0; i < one.weights.size(); ++i) {
      EXPECT_TRUE(one.weights[i].equal(other.weights[i])) << i << clips;
    }
  }
}

constexpr size_t kFirstOfJudge = 2, kMeanOfJudge = 6;  // of Pair's parameters and buffers

/// The first step of a run on two ranks left out the judge's update, on both.
void expect_judge_left_out(StepOfPair step) {
  auto config = scaled_pair();
  config.parallel.virtual_ranks = 0;
  config.train.max_steps = 1;
  torch::manual_seed(5);
  const auto fresh = Pair().parameters();
  const auto runs = run_pair(2, config, step);
  for (const auto& run : runs) {
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.skipped, std::vector<std::string>{"judge"});
    EXPECT_EQ(run.state.loss_scale, (LossScaleState{256, 0, 1}));
    for (size_t i = 0; i < fresh.size(); ++i) {
      EXPECT_TRUE(run.weights[i].equal(runs[0].weights[i])) << i;
      EXPECT_EQ(run.weights[i].equal(fresh[i]), i >= kFirstOfJudge) << i;
    }
  }
}

TEST(ManualSteps, AnOverflowOfOneRankIsLeftOutByAll) {
  expect_judge_left_out(overflow_on_one_rank);
}

// Running statistics do not keep its effect either.
TEST(ManualSteps, ABadLossOfOneRankIsLeftOutByAll) {
  expect_judge_left_out(judge_badly);
  auto config = scaled_pair();
  config.parallel.virtual_ranks = 0;
  config.train.max_steps = 1;
  for (const auto& run : run_pair(2, config, judge_badly)) {
    EXPECT_TRUE(run.weights[kMeanOfJudge].equal(torch::zeros({6000})));
  }
  for (const auto& run : run_pair(2, config, judge_once)) {
    EXPECT_FALSE(run.weights[kMeanOfJudge].equal(torch::zeros({6000})));
  }
}

TEST(ManualSteps, WithoutDroppingAnOverflowEndsTheRun) {
  for (const auto& run : run_pair(2, scaled_pair(false), overflow_on_one_rank)) {
    EXPECT_EQ(run.error,
              "epoch: 1 step: 1. Gradients of 'judge' overflow with a loss scale of 512. With "
              "system.drop_overflow_update=True such a step is left out");
  }
}

TEST(ManualSteps, TheEndAfterTooManyNamesTheirPart) {
  auto config = scaled_pair();
  config.parallel.virtual_ranks = 0;
  config.scheduler.num_epochs = 60;
  for (const auto& run : run_pair(2, config, overflow_on_one_rank)) {
    EXPECT_NE(run.error.find("Loss or gradients of 'judge' overflowed in 100 optimizer steps in a "
                             "row"),
              std::string::npos)
        << run.error;
  }
}

TEST(ManualSteps, ALineNamesWhatIsLeftOut) {
  StepReport report{.steps_per_epoch = 9, .updated = true};
  report.skipped = {"judge"};
  report.loss_scale = LossScaleState{256, 0, 1};
  EXPECT_EQ(dropped_line(report, 4),
            "epoch: [1/4] step: [1/9], gradients of 'judge' overflowed, update dropped (1 so far), "
            "loss scale: 256.0");
  report.skipped = {"judge", "maker"};
  EXPECT_NE(dropped_line(report, 4).find("loss or gradients of 'judge', 'maker' are not finite"),
            std::string::npos);
}

TEST(ManualSteps, AverageBothNetworksWithoutACopy) {
  auto config = pair_config();
  config.parallel.virtual_ranks = 0;
  const auto runs = run_pair(2, config, judge_once);
  EXPECT_EQ(runs[0].error, "");
  EXPECT_EQ(runs[0].copied, 0);
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(runs[0].weights[i].equal(runs[1].weights[i])) << i;
}

TEST(ManualSteps, ABadLossOfOneRankReachesTheWeightsOfNone) {
  auto config = pair_config();
  config.parallel.virtual_ranks = 0;
  torch::manual_seed(5);
  const auto fresh = Pair().parameters();
  for (const auto& run : run_pair(2, config, make_badly)) {
    EXPECT_NE(run.error.find("epoch: 1 step: 1. Invalid loss of 'maker', terminating training: it "
                             "is not a finite number on rank 1."),
              std::string::npos)
        << run.error;
    for (size_t i = 0; i < fresh.size(); ++i) EXPECT_TRUE(run.weights[i].equal(fresh[i])) << i;
  }
}

/// Points at 16 places; nothing is learnt from them here.
class Places final : public BatchMaker {
 public:
  int64_t size() const override { return 16; }
  Batch make(const BatchRows& rows) const override {
    return {indices_of(rows).to(at::kFloat).unsqueeze(1) / 16, {}, rows.num_counted};
  }
};

struct Two final : Model {
  torch::nn::Linear left = register_module("left", torch::nn::Linear(1, 1));
  torch::nn::Linear right = register_module("right", torch::nn::Linear(1, 1));
};

std::unique_ptr<torch::optim::Optimizer> make_adam(torch::nn::Module& module) {
  return std::make_unique<torch::optim::Adam>(module.parameters(), torch::optim::AdamOptions(0.1));
}

void step_both(TrainingStep& step) {
  auto& two = step.network<Two>();
  for (int i = 0; i < 2; ++i) {
    step.optimize("left", [&](const Batch& batch) { return two.left(batch.images).mean(); });
  }
  step.optimize("right", [&](const Batch& batch) {
    return (two.right(batch.images) - two.left(batch.images)).square().mean();
  });
}

class ManualRecipe : public ::testing::Test {
 protected:
  Recipe recipe() const {
    Recipe recipe;
    recipe.name = "two";
    recipe.network = [](int64_t) { return std::make_shared<Two>(); };
    recipe.data = [](const DatasetUse&) { return std::make_unique<const Places>(); };
    recipe.optimizers = {{"left", make_adam}, {"right", make_sgd}};
    recipe.training_step = step_both;
    recipe.settings = {"train.ckpt_save_dir=" + (folder_ / "out").string(),
                       "scheduler.num_epochs=4", "scheduler.lr=0.1", "scheduler.warmup_epochs=0",
                       "train.loader.batch_size=4"};
    return recipe;
  }
  TensorMap saved(const std::string& file) const {
    return load_tensors(folder_ / "out" / "latest" / (file + ".safetensors")).tensors;
  }
  TrainingState saved_state() const {
    const auto file = folder_ / "out/latest/state.json";
    return decode_training_state(read_file(file, 1 << 20), file.string()).state;
  }
  static std::string refusal(const Recipe& given) {
    return error_of([&] { train(given, World::join()); }).what();
  }

  const TempFolder folder_;
};

TEST_F(ManualRecipe, EachPartHasItsOptimizerAndARunResumes) {
  EXPECT_EQ(train(recipe(), World::join()), 0);
  const auto whole = saved("model"), adam = saved("optimizer"), sgd = saved("optimizer_right");
  EXPECT_EQ(adam.at("left.weight.step").item<int64_t>(), 32) << "two steps of 16";
  EXPECT_EQ(adam.count("right.weight.step"), 0U);
  auto first = recipe();
  first.settings.emplace_back("train.max_steps=6");
  EXPECT_EQ(train(first, World::join()), 0);
  auto rest = recipe();
  rest.settings.emplace_back("model.resume=True");
  EXPECT_EQ(train(rest, World::join()), 0);
  for (const auto& [name, tensor] : saved("model")) EXPECT_TRUE(tensor.equal(whole.at(name)));
  for (const auto& [name, tensor] : saved("optimizer")) EXPECT_TRUE(tensor.equal(adam.at(name)));
  EXPECT_EQ(saved("optimizer_right").size(), sgd.size());
  rest.optimizers[1].make = make_adam;
  EXPECT_NE(refusal(rest).find("the optimizer of 'right' was SGD, now it is Adam"),
            std::string::npos);
}

TEST_F(ManualRecipe, MixedPrecisionLearnsAsFloat32Does) {
  EXPECT_EQ(train(recipe(), World::join()), 0);
  const auto exact = saved("model");
  auto given = recipe();
  given.settings.emplace_back("system.amp_level=O1");
  EXPECT_EQ(train(given, World::join()), 0);
  for (const auto& [name, tensor] : saved("model")) {
    EXPECT_EQ(tensor.scalar_type(), at::kFloat);
    EXPECT_TRUE(tensor.allclose(exact.at(name), 0.02, 0.02)) << name << tensor << exact.at(name);
  }
  EXPECT_FALSE(saved("model").at("right.weight").equal(exact.at("right.weight")));
}

/// Infinite gradients in three of 16 steps: of one part, of both, of the other part.
std::function<void(TrainingStep&)> step_with_overflows(int64_t& calls) {
  return [&calls](TrainingStep& step) {
    ++calls;
    auto& two = step.network<Two>();
    step.optimize("left", [&](const Batch& batch) {
      return infinite_if(calls == 3 || calls == 5, two.left(batch.images).mean());
    });
    step.optimize("right", [&](const Batch& batch) {
      return infinite_if(calls == 5 || calls == 8, two.right(batch.images).square().mean());
    });
  };
}

TEST_F(ManualRecipe, ALossScaleAndItsDropsGoOnBitForBit) {
  auto given = recipe();
  int64_t calls = 0;
  given.training_step = step_with_overflows(calls);
  given.settings.insert(
      given.settings.end(),
      {"system.amp_level=O1", "loss_scaler={type: dynamic, loss_scale: 512, scale_window: 4}"});
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(calls, 16);
  const auto whole = saved("model"), adam = saved("optimizer");
  EXPECT_EQ(adam.at("left.weight.step").item<int64_t>(), 14);
  EXPECT_EQ(saved_state().step, 15) << "a step without any update does not count";
  EXPECT_EQ(saved_state().loss_scale, (LossScaleState{256, 0, 3})) << "64 after the last overflow";
  calls = 0;
  auto first = given;
  first.settings.emplace_back("train.max_steps=6");
  EXPECT_EQ(train(first, World::join()), 0);
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(saved_state().loss_scale, (LossScaleState{128, 2, 2}));
  given.settings.emplace_back("model.resume=True");
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(saved_state().loss_scale, (LossScaleState{256, 0, 3}));
  for (const auto& [name, tensor] : saved("model")) EXPECT_TRUE(tensor.equal(whole.at(name)));
  for (const auto& [name, tensor] : saved("optimizer")) EXPECT_TRUE(tensor.equal(adam.at(name)));
}

/// 16 samples by `batch_size`, so many of them accumulated.
std::vector<std::string> batches_of_run(int64_t batch_size, int64_t accumulation) {
  return {"train.loader.batch_size=" + std::to_string(batch_size),
          "train.gradient_accumulation_steps=" + std::to_string(accumulation),
          "train.loader.drop_remainder=False"};
}

// So also with several updates of one part in a step, and one that sees another part's update; 6, 6
// and 4 samples count as many as they are.
TEST_F(ManualRecipe, AccumulationIsThatOfOneLargeBatch) {
  struct Shape {
    int64_t large, small, accumulation;
  };
  for (const auto& shape : {Shape{4, 2, 2}, Shape{8, 2, 4}, Shape{16, 6, 3}}) {
    std::vector<TensorMap> weights;
    std::vector<double> losses;
    for (const int64_t parts : {int64_t{1}, shape.accumulation}) {
      auto given = recipe();
      const auto batches = batches_of_run(parts == 1 ? shape.large : shape.small, parts);
      given.settings.insert(given.settings.end(), batches.begin(), batches.end());
      int64_t steps = 0;
      given.training_step = [&](TrainingStep& step) {
        EXPECT_EQ(step.number(), steps++);
        step_both(step);
      };
      std::vector<double> seen;
      int64_t next = 0;
      given.events.before_step = [&](Model&, const StepFacts& facts) {
        EXPECT_EQ(facts.optimizer_steps, steps);
        next = facts.step_in_epoch;
      };
      given.events.on_step = [&](const StepFacts& facts) {
        EXPECT_EQ(facts.step_in_epoch, next);
        EXPECT_EQ(facts.step_in_epoch, parts * ((steps - 1) % (16 / shape.large) + 1));
        seen.push_back(facts.loss);
      };
      given.events.on_epoch = [&](int64_t, double loss) { seen.push_back(loss); };
      EXPECT_EQ(train(given, World::join()), 0);
      EXPECT_EQ(steps, 4 * 16 / shape.large);
      weights.push_back(saved("model"));
      if (parts == 1) losses = seen;
      ASSERT_EQ(seen.size(), losses.size());
      for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], losses[i], 1e-5) << i;
    }
    for (const auto& [name, tensor] : weights[0]) {
      EXPECT_TRUE(tensor.allclose(weights[1].at(name), 1e-4, 1e-5)) << name << shape.small;
    }
  }
}

// In the last step of an epoch, of 4 samples behind 6 and 6, too.
TEST_F(ManualRecipe, LogsMeansOverItsBatchesAndCalls) {
  auto given = recipe();
  const auto batches = batches_of_run(6, 3);
  given.settings.insert(given.settings.end(), batches.begin(), batches.end());
  given.log_names = {"of_left", "of_right", "never"};
  given.training_step = [](TrainingStep& step) {
    auto& two = step.network<Two>();
    for (const double factor : {1.0, 3.0}) {
      step.optimize("left", [&](const Batch& batch) {
        const auto loss = two.left(batch.images).square().mean();
        log_value("of_left", at::full({}, factor));
        return loss;
      });
    }
    step.optimize("right", [&](const Batch& batch) {
      const auto loss = two.right(batch.images).square().mean();
      log_value("of_right", loss);
      return loss;
    });
    EXPECT_STREQ(error_of([] { log_value("of_left", at::zeros({})); }).what(),
                 "log_value('of_left'): no loss is being computed in this thread");
  };
  int64_t steps = 0;
  given.events.on_step = [&](const StepFacts& facts) {
    ++steps;
    ASSERT_EQ(facts.logged.size(), 5U);
    const auto value = [&](const std::string& name) {
      for (const auto& [own, number] : facts.logged) {
        if (own == name) return number;
      }
      ADD_FAILURE() << name;
      return 0.0;
    };
    EXPECT_NEAR(value("of_left"), 2, 1e-12);
    EXPECT_NEAR(value("of_right"), value("loss_right"), 1e-12);
    EXPECT_TRUE(std::isnan(value("never")));
  };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(steps, 4);
  given.log_names = {"loss_left"};
  EXPECT_EQ(refusal(given),
            "the name 'loss_left' of a logged value is another field of metrics.jsonl");
}

TEST_F(ManualRecipe, AccumulationResumesWithinAnEpoch) {
  auto given = recipe();
  const auto batches = batches_of_run(2, 3);  // eight batches: steps of 3, 3 and 2
  given.settings.insert(given.settings.end(), batches.begin(), batches.end());
  EXPECT_EQ(train(given, World::join()), 0);
  const auto whole = saved("model");
  auto first = given;
  first.settings.emplace_back("train.max_steps=5");
  EXPECT_EQ(train(first, World::join()), 0);
  EXPECT_EQ(saved_state().batch_in_epoch, 6);
  given.settings.emplace_back("model.resume=True");
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(saved_state().step, 12);
  for (const auto& [name, tensor] : saved("model")) EXPECT_TRUE(tensor.equal(whole.at(name)));
}

TEST_F(ManualRecipe, AResumeWithOtherOptimizersNamesThem) {
  auto given = recipe();
  for (auto& each : given.optimizers) each.make = make_adam;
  given.settings.insert(given.settings.end(), {"train.max_steps=2", "model.resume=True"});
  EXPECT_EQ(train(given, World::join()), 0);
  const std::string checkpoint = (folder_ / "out/step_000002").string();
  std::swap(given.optimizers[0], given.optimizers[1]);
  EXPECT_EQ(refusal(given), checkpoint +
                                ": Recipe::optimizers began with 'left' when this was saved, and "
                                "begins with 'right' now: keep their order");
  given.network = [](int64_t) {
    auto two = std::make_shared<Two>();
    two->register_module("third", torch::nn::Linear(1, 1));
    return two;
  };
  std::swap(given.optimizers[0], given.optimizers[1]);
  given.optimizers.push_back({"third", make_adam});
  EXPECT_EQ(refusal(given), checkpoint +
                                ": behind the first, Recipe::optimizers were 'right' when this was "
                                "saved, and are 'right', 'third' now");
  given = recipe();
  given.settings.emplace_back("model.resume=True");
  given.optimizers.clear();
  given.training_step = {};
  EXPECT_EQ(refusal(given), checkpoint +
                                ": behind the first, Recipe::optimizers were 'right' when this was "
                                "saved, and are none now");
}

TEST_F(ManualRecipe, ABadLossIsNotedBeforeItsUpdate) {
  auto given = recipe();
  std::shared_ptr<Two> two;
  given.network = [&](int64_t) { return two = std::make_shared<Two>(); };
  std::vector<at::Tensor> before;
  given.training_step = [&](TrainingStep& step) {
    const bool bad = step.number() == 2;
    for (const auto& parameter : two->parameters()) {
      if (bad) before.push_back(parameter.detach().clone());
    }
    step.optimize("right", [&](const Batch& batch) {
      const auto loss = two->right(batch.images).mean();
      return bad ? loss * std::nan("") : loss;
    });
  };
  EXPECT_NE(refusal(given).find("epoch: 1 step: 3. Invalid loss of 'right', terminating training"),
            std::string::npos);
  const auto after = two->parameters();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].equal(before[i])) << i;
}

TEST_F(ManualRecipe, APartBeforeABadLossKeepsItsUpdateInMemoryAlone) {
  auto given = recipe();
  std::shared_ptr<Two> two;
  given.network = [&](int64_t) { return two = std::make_shared<Two>(); };
  const auto values = [&] {
    std::vector<at::Tensor> copies;
    for (const auto& parameter : two->parameters()) copies.push_back(parameter.detach().clone());
    return copies;
  };
  std::vector<at::Tensor> after_epoch, before;
  given.training_step = [&](TrainingStep& step) {
    const bool bad = step.number() == 5;  // an epoch has four
    if (step.number() == 4) after_epoch = values();
    if (bad) before = values();
    step.optimize("left", [&](const Batch& batch) { return two->left(batch.images).mean(); });
    step.optimize("right", [&](const Batch& batch) {
      const auto loss = two->right(batch.images).mean();
      return bad ? loss * std::nan("") : loss;
    });
  };
  EXPECT_NE(refusal(given).find("epoch: 2 step: 2. Invalid loss of 'right', terminating training"),
            std::string::npos);
  const auto after = values();
  ASSERT_EQ(after.size(), 4U);
  for (const size_t left : {0U, 1U}) EXPECT_FALSE(after[left].equal(before[left])) << left;
  for (const size_t right : {2U, 3U}) EXPECT_TRUE(after[right].equal(before[right])) << right;
  const auto kept = saved("model");
  EXPECT_TRUE(kept.at("left.weight").equal(after_epoch[0]));
  EXPECT_TRUE(kept.at("right.weight").equal(after_epoch[2]));
}

TEST_F(ManualRecipe, AWeightOfTwoNamesInOnePartHasOneOptimizer) {
  auto given = recipe();
  given.network = [](int64_t) {
    auto two = std::make_shared<Two>();
    two->left->register_parameter("tied", two->left->weight);
    return two;
  };
  given.optimizers[0].make = [](torch::nn::Module& left) {
    const auto all = left.named_parameters();
    return std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{all["weight"], all["bias"]},
                                               torch::optim::SGDOptions(0.05));
  };
  given.settings.emplace_back("train.max_steps=1");
  EXPECT_EQ(train(given, World::join()), 0);
  const auto once = saved("model").at("left.weight");
  EXPECT_TRUE(saved("model").at("left.tied").equal(once));
  given.optimizers[0].make = [](torch::nn::Module& left) {  // parameters() has the weight twice
    return std::make_unique<torch::optim::SGD>(left.parameters(), torch::optim::SGDOptions(0.05));
  };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_TRUE(saved("model").at("left.weight").equal(once));
}

TEST_F(ManualRecipe, MistakesAreOneLine) {
  auto given = recipe();
  given.optimizers.clear();
  EXPECT_EQ(refusal(given), "train(recipe): training_step and optimizers belong together");
  given = recipe();
  given.loss = [](const Tensors& outputs, const Tensors&) { return outputs[0].mean(); };
  EXPECT_EQ(refusal(given), "train(recipe): training_step takes the place of loss and optimizer");
  given = recipe();
  given.optimizers[0].part = "lefd";
  EXPECT_EQ(refusal(given),
            "recipe two: the network has no module 'lefd' for an optimizer, did "
            "you mean 'left'?");
  given = recipe();
  given.optimizers.pop_back();
  EXPECT_EQ(refusal(given),
            "recipe two: the parameter 'right.weight' is in 0 of the parts with "
            "an optimizer, and must be in one");
  given = recipe();
  given.settings.emplace_back("system.amp_level=O2");
  EXPECT_EQ(refusal(given),
            "recipe two: a recipe with training_step needs system.amp_level=O0 or O1: O2 and O3 "
            "cast the weights, and its losses get float32");
  given = recipe();
  given.settings.emplace_back("parallel.comm_hook=int8");
  EXPECT_EQ(refusal(given),
            "recipe two: a recipe with training_step needs parallel.comm_hook none, fp16 or "
            "bf16");
  given = recipe();
  given.training_step = [](TrainingStep& step) {
    step.optimize("rihgt", [](const Batch&) { return at::Tensor(); });
  };
  EXPECT_EQ(refusal(given),
            "TrainingStep::optimize: the recipe has no optimizer of 'rihgt', did you mean "
            "'right'?");
  given.training_step = [](TrainingStep& step) {
    step.optimize("right", [](const Batch& batch) { return batch.images; });
  };
  EXPECT_EQ(refusal(given),
            "TrainingStep::optimize('right'): the loss is 4 numbers, not one number");
}

}  // namespace
}  // namespace lockstep
