// Mixed precision in the trainer: levels, loss scales, overflows.
#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

constexpr AmpLevel kLowLevels[] = {AmpLevel::kO1, AmpLevel::kO2, AmpLevel::kO3};

Config at_level(AmpLevel level) {
  auto config = tiny_config();
  config.system.amp_level = level;
  return config;
}

Config scaled(LossScalerConfig scaler) {
  auto config = tiny_config();
  config.loss_scaler = scaler;
  config.system.drop_overflow_update = true;
  return config;
}

/// Overflows in the listed forward passes of training, counted from 1 on each rank, also over
/// several runs.
std::function<void(int, TinyModel&)> overflow_at(std::vector<int64_t> steps, int only_rank = -1) {
  auto counts = std::make_shared<std::array<std::atomic<int64_t>, 8>>();
  return [=](int rank, TinyModel& model) {
    if (only_rank >= 0 && rank != only_rank) return;
    model.overflows = [=](int64_t) {
      const int64_t step = ++counts->at(static_cast<size_t>(rank));
      return std::find(steps.begin(), steps.end(), step) != steps.end();
    };
  };
}

class ReportKeeper final : public Callback {
 public:
  void on_step(Trainer&, const StepReport& report) override { reports.push_back(report); }
  std::vector<StepReport> reports;
};

/// The reports of rank 0, and its run.
std::pair<std::vector<StepReport>, TinyRun> reports_of(int ranks, const Config& config,
                                                       TinyHooks hooks) {
  const auto keeper = std::make_shared<ReportKeeper>();
  const auto others = hooks.add_callbacks;
  hooks.add_callbacks = [=](Trainer& trainer) {
    if (trainer.rank() == 0) trainer.add(keeper);
    others(trainer);
  };
  auto runs = run_tiny(ranks, config, hooks);
  return {keeper->reports, runs[0]};
}

// Batch norm over four samples enlarges the rounding of bfloat16 where the values of a unit are
// close: with libtorch 2.13 a loss differed by 0.16. So a batch has all 24.
TEST(TrainAmp, EveryLevelLearnsAsFloat32Does) {
  auto config = tiny_config();
  config.train.loader.batch_size = 24;
  const auto exact = run_tiny(1, config)[0];
  for (const auto level : kLowLevels) {
    config.system.amp_level = level;
    const auto low = run_tiny(1, config)[0];
    ASSERT_EQ(low.losses.size(), exact.losses.size());
    double worst = 0;
    for (size_t i = 0; i < low.losses.size(); ++i) {
      worst = std::max(worst, std::abs(low.losses[i] - exact.losses[i]));
    }
    EXPECT_LT(worst, 0.02) << to_string(level);
    EXPECT_GT(worst, 1e-5) << to_string(level) << " is not float32";
  }
}

TEST(TrainAmp, RanksAndRunsAreEqualBitForBit) {
  for (const auto level : kLowLevels) {
    for (const bool sync_bn : {false, true}) {
      auto config = at_level(level);
      config.parallel.sync_bn = sync_bn;
      const auto first = run_tiny(2, config), second = run_tiny(2, config);
      EXPECT_TRUE(same_weights(first[0], first[1], kTinyParameters)) << to_string(level);
      EXPECT_TRUE(same_weights(first[0], second[0])) << to_string(level);
      EXPECT_EQ(first[0].losses, second[1].losses);
    }
  }
}

TEST(TrainAmp, HooksAndGraphsAreTheSameChoices) {
  for (const auto level : {AmpLevel::kO1, AmpLevel::kO2}) {
    const auto plain = run_tiny(2, at_level(level))[0];
    for (const auto& hook : comm_hook_names()) {
      auto config = at_level(level);
      config.parallel.comm_hook = hook;
      const auto runs = run_tiny(2, config);
      EXPECT_TRUE(same_weights(runs[0], runs[1], kTinyParameters)) << to_string(level) << hook;
      EXPECT_NEAR(runs[0].losses.back(), plain.losses.back(), 0.05) << to_string(level) << hook;
    }
    auto unused = at_level(level), fixed = at_level(level);
    unused.parallel.find_unused_parameters = fixed.parallel.static_graph = true;
    EXPECT_TRUE(same_weights(run_tiny(2, unused)[0], plain)) << to_string(level);
    EXPECT_TRUE(same_weights(run_tiny(2, fixed)[0], plain)) << to_string(level);
  }
}

// The gradients fit float32, but not the float16 of their transfer: the scale decreases.
TEST(TrainAmp, TheScaleFindsWhatAHookCanCarry) {
  auto config = scaled({.dynamic = true, .loss_scale = 1 << 30});
  config.parallel.comm_hook = "fp16";
  config.scheduler.num_epochs = 20;
  const auto runs = run_tiny(2, config);
  const auto& state = runs[0].state;
  EXPECT_GT(state.loss_scale->overflows, 3);
  EXPECT_EQ(state.loss_scale->scale,
            std::ldexp(1, 30 - static_cast<int>(state.loss_scale->overflows)));
  EXPECT_EQ(state.step + state.loss_scale->overflows, 60);
  EXPECT_GT(state.step, 30);
  EXPECT_TRUE(same_weights(runs[0], runs[1], kTinyParameters));
}

// Also if their models differ: all ranks take rank 0's weights, in float32 too.
TEST(TrainAmp, RanksStartFromTheWeightsOfRankZero) {
  TinyHooks other;
  other.model = [](int rank, TinyModel& model) {
    const at::NoGradGuard no_grad;
    if (rank == 1) model.first->weight.add_(1e-4);  // below the resolution of bfloat16
  };
  const auto runs = run_tiny(2, at_level(AmpLevel::kO2), other);
  EXPECT_TRUE(same_weights(runs[0], runs[1], kTinyParameters));
  EXPECT_TRUE(same_weights(runs[0], run_tiny(2, at_level(AmpLevel::kO2))[0], kTinyParameters));
}

// Powers of two change exponents alone, both here and in the sums of gradients.
TEST(TrainAmp, AScaleLeavesTheBits) {
  const auto plain = run_tiny(2, tiny_config());
  EXPECT_TRUE(same_weights(run_tiny(2, scaled({.loss_scale = 1024}))[0], plain[0]));
  auto clipped = scaled({.loss_scale = 1024}), unscaled = tiny_config();
  clipped.train.clip_grad = unscaled.train.clip_grad = true;
  clipped.train.clip_norm = unscaled.train.clip_norm = 0.1;
  const auto clipped_run = run_tiny(2, clipped)[0];
  EXPECT_TRUE(same_weights(clipped_run, run_tiny(2, unscaled)[0])) << "unscaled, then clipped";
  EXPECT_FALSE(same_weights(clipped_run, plain[0]));
}

TEST(TrainAmp, AGradientOfTwoNamesIsUnscaledAndCountedOnce) {
  auto config = scaled({.loss_scale = 1024});
  config.system.amp_level = AmpLevel::kO2;
  config.train.clip_grad = true;
  config.train.clip_norm = 0.1;
  TinyHooks tied;
  tied.model = [](int, TinyModel& model) {
    model.last->register_parameter("tied", model.first->weight);
  };
  const auto plain = run_tiny(1, config)[0], twice = run_tiny(1, config, tied)[0];
  ASSERT_GT(twice.weights.size(), plain.weights.size());
  for (size_t i = 0; i < kTinyParameters; ++i) {
    EXPECT_TRUE(twice.weights[i].equal(plain.weights[i])) << i;
  }
}

TEST(TrainAmp, AnOverflowLeavesTheStepOut) {
  auto config = scaled({.dynamic = true, .loss_scale = 512, .scale_window = 4});
  const TinyHooks hooks{.model = overflow_at({3, 4, 10})};
  const auto [reports, run] = reports_of(2, config, hooks);
  std::vector<double> scales, lrs;
  std::vector<int64_t> dropped;
  for (size_t i = 0; i < reports.size(); ++i) {
    scales.push_back(reports[i].loss_scale->scale);
    EXPECT_NE(reports[i].dropped, reports[i].updated);
    if (reports[i].dropped) {
      dropped.push_back(static_cast<int64_t>(i) + 1);
    } else {
      lrs.push_back(reports[i].lr);
    }
  }
  EXPECT_EQ(dropped, (std::vector<int64_t>{3, 4, 10}));
  scales.resize(12);
  EXPECT_EQ(scales,
            (std::vector<double>{512, 512, 256, 128, 128, 128, 128, 256, 256, 128, 128, 128}));
  const int64_t steps = std::ssize(reports);
  EXPECT_EQ(run.state.step, steps - 3);
  EXPECT_EQ(run.state.loss_scale->overflows, 3);
  for (const auto& tensor : run.weights) EXPECT_TRUE(tensor.isfinite().all().item<bool>());
  // The schedule does not advance.
  const auto undisturbed = run_tiny(2, tiny_config())[0].lrs;
  EXPECT_EQ(lrs, std::vector<double>(undisturbed.begin(), undisturbed.end() - 3));
}

TEST(TrainAmp, WithAccumulationAWholeStepIsLeftOut) {
  auto config = scaled({.dynamic = true, .loss_scale = 8});
  config.train.gradient_accumulation_steps = 2;
  const auto [reports, run] = reports_of(1, config, {.model = overflow_at({3})});
  EXPECT_FALSE(reports[2].dropped) << "a micro-step is not evaluated";
  EXPECT_TRUE(reports[3].dropped);
  EXPECT_EQ(reports[3].loss_scale->scale, 4);
  EXPECT_EQ(run.state.dropped_batches, 2);
  EXPECT_EQ(run.state.step, 11);
  EXPECT_EQ(reports[5].lr, reports[3].lr);
}

// No reduction carries an overflow that occurs on one rank alone.
TEST(TrainAmp, OneRanksOverflowIsEveryonesDecision) {
  class Poison final : public Callback {
   public:
    void on_step(Trainer& trainer, const StepReport&) override {
      if (trainer.rank() != 1 || ++steps_ != 3) return;
      at::Tensor frozen = trainer.model().named_parameters()["frozen"];
      frozen.mutable_grad() = at::full_like(frozen, std::numeric_limits<float>::infinity());
    }
    int steps_ = 0;
  };
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) {
    model.register_parameter("frozen", torch::ones({1}), /*requires_grad=*/false);
  };
  hooks.add_callbacks = [](Trainer& trainer) { trainer.add(std::make_shared<Poison>()); };
  const auto runs = run_tiny(3, scaled({.dynamic = true, .loss_scale = 2}), hooks);
  for (const auto& run : runs) {
    EXPECT_EQ(run.state.loss_scale->overflows, 1);
    EXPECT_TRUE(same_weights(run, runs[0], kTinyParameters));
  }
}

TEST(TrainAmp, WithoutDroppingAnOverflowEndsTheRun) {
  auto config = scaled({.loss_scale = 512});
  config.system.drop_overflow_update = false;
  const auto error = error_of([&] { run_tiny(2, config, {.model = overflow_at({8}, 1)}); });
  EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  EXPECT_EQ(std::string(error.what()),
            "epoch: 3 step: 2. Gradients overflow with a loss scale of 512. With "
            "system.drop_overflow_update=True such a step is left out");
}

/// Dynamic, and in a file without an entry for dropping, or with the opposite, as in MindOCR's
/// recipes.
Config dynamic_only() {
  auto config = scaled({.dynamic = true, .loss_scale = 512});
  config.system.drop_overflow_update = false;
  return config;
}

TEST(TrainAmp, ADynamicScaleLeavesStepsOutByItself) {
  const auto [reports, run] = reports_of(2, dynamic_only(), {.model = overflow_at({3, 8})});
  EXPECT_EQ(run.state.loss_scale->overflows, 2);
  EXPECT_EQ(run.state.loss_scale->scale, 128);
  EXPECT_EQ(run.state.step, std::ssize(reports) - 2);
}

// Running statistics do not keep its effect either.
TEST(TrainAmp, ALossThatIsNoNumberLeavesTheStepOut) {
  for (const int64_t accumulation : {1, 2}) {
    for (const bool spoil : {false, true}) {
      auto config = dynamic_only();
      config.train.gradient_accumulation_steps = accumulation;
      config.train.ema = true;
      TinyHooks hooks;
      hooks.model = [=](int rank, TinyModel& model) {
        if (rank == 1) (spoil ? model.spoiled_call : model.poisoned_call) = 4;
      };
      const auto [reports, run] = reports_of(2, config, hooks);
      EXPECT_TRUE(std::isnan(reports[3].loss));  // the first of the second epoch's 3
      EXPECT_TRUE(reports[accumulation == 1 ? 3 : 4].dropped);
      EXPECT_EQ(run.state.loss_scale->overflows, 1);
      EXPECT_EQ(run.state.step, accumulation == 1 ? 11 : 7);
      for (const auto& tensor : run.weights) EXPECT_TRUE(tensor.isfinite().all().item<bool>());
      for (const auto& [name, tensor] : run.average) {
        EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
      }
      for (const double loss : run.epoch_losses) EXPECT_TRUE(std::isfinite(loss));
      EXPECT_NE(dropped_line(reports[3], 4).find("the loss is no finite number"),
                std::string::npos);
    }
  }
}

TEST(TrainAmp, WithoutDroppingSuchALossEndsTheRun) {
  auto config = scaled({.loss_scale = 512});
  config.system.drop_overflow_update = false;
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) { model.poisoned_call = 2; };
  const auto error = error_of([&] { run_tiny(1, config, hooks); });
  EXPECT_NE(std::string(error.what()).find("Invalid loss"), std::string::npos) << error.what();
}

TEST(TrainAmp, TooManyInARowEndTheRun) {
  auto config = dynamic_only();
  config.scheduler.num_epochs = 1000;
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) {
    model.overflows = [](int64_t call) { return call > 5; };
  };
  const auto error = error_of([&] { run_tiny(2, config, hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  EXPECT_NE(std::string(error.what()).find("in 100 optimizer steps in a row, the loss scale is 1."),
            std::string::npos)
      << error.what();
}

class AmpResume : public ::testing::TestWithParam<std::tuple<AmpLevel, int64_t>> {};

// Overflows before and after the interruption, and one step before it: the scale, the clean steps
// and the place in the schedule continue.
TEST_P(AmpResume, GivesTheBitsOfTheUndisturbedRun) {
  const auto [level, first] = GetParam();
  auto config = scaled({.dynamic = true, .loss_scale = 512, .scale_window = 3});
  config.system.amp_level = level;
  config.optimizer.opt = "adamw";
  config.train.loader.batch_size = 2;
  const TempFolder dir;
  config.train.ckpt_save_dir = dir.path();
  const std::vector<int64_t> overflows = {2, 7, 9, 13};
  config.train.max_steps = 16;
  const auto whole = run_tiny(2, config, {.model = overflow_at(overflows)})[0];
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks{.model = overflow_at(overflows)};
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<Results>());
  };
  config.train.max_steps = first;
  run_tiny(2, config, hooks);
  config.train.max_steps = 16;
  hooks.start = [&](torch::nn::Module& weights, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), weights, optimizer, config.model.name());
  };
  const auto rest = run_tiny(2, config, hooks)[0];
  EXPECT_TRUE(same_weights(whole, rest));
  EXPECT_EQ(whole.state.loss_scale, rest.state.loss_scale);
  EXPECT_EQ(rest.state.loss_scale->overflows, 4);
  EXPECT_EQ(whole.losses.back(), rest.losses.back());
  EXPECT_EQ(whole.lrs.back(), rest.lrs.back());
  const auto records = read_metrics(dir / "metrics.jsonl");
  ASSERT_EQ(records.size(), 16u);
  EXPECT_EQ(records[0].value("dropped_steps"), 0);
  EXPECT_EQ(records[1].value("dropped_steps"), 1);
  EXPECT_EQ(records[1].value("loss_scale"), 256);
  EXPECT_EQ(records[15].value("dropped_steps"), 4);
}

INSTANTIATE_TEST_SUITE_P(All, AmpResume,
                         ::testing::Combine(::testing::Values(AmpLevel::kO0, AmpLevel::kO2,
                                                              AmpLevel::kO3),
                                            ::testing::Values(5, 6, 8)));

TEST(TrainAmp, CheckpointsAreThoseOfAFloat32Model) {
  for (const auto level : kLowLevels) {
    const TempFolder dir;
    auto config = at_level(level);
    config.train.ckpt_save_dir = dir.path();
    TrainingLog log({.file = {}, .console = false});
    TinyHooks hooks;
    hooks.add_callbacks = [&](Trainer& trainer) {
      trainer.add(std::make_shared<Checkpoints>(log));
    };
    const auto run = run_tiny(1, config, hooks)[0];
    TinyModel plain(true);
    load_weights(dir.path(), plain);
    const auto parameters = plain.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(parameters[i].equal(run.weights[i])) << to_string(level) << " " << i;
    }
    EXPECT_FALSE(plain.norm->running_mean.equal(torch::zeros({16}))) << to_string(level);
  }
}

}  // namespace
}  // namespace lockstep
