#include "lockstep/train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/training_checkpoint.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/task/classification.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

TEST(AccumulationSlot, LastOfAnEpochTakesWhatIsLeft) {
  EXPECT_EQ(accumulation_slot(0, 5, 1).size, 1);
  EXPECT_TRUE(accumulation_slot(0, 5, 1).last);
  EXPECT_EQ(accumulation_slot(2, 5, 2).size, 2);
  EXPECT_FALSE(accumulation_slot(2, 5, 2).last);
  EXPECT_TRUE(accumulation_slot(3, 5, 2).last);
  EXPECT_EQ(accumulation_slot(4, 5, 2).size, 1);
  EXPECT_TRUE(accumulation_slot(4, 5, 2).last);
  EXPECT_EQ(accumulation_slot(4, 5, 8).size, 5);
}

TEST(Trainer, FollowsTheScheduleAndCounts) {
  const auto run = run_tiny(1, tiny_config())[0];
  EXPECT_EQ(run.reason, StopReason::kEpochsDone);
  EXPECT_EQ(run.losses.size(), 24u);
  EXPECT_DOUBLE_EQ(run.lrs[12], 0.05 * std::pow(0.5, 0.9));
  EXPECT_EQ(run.state.step, 24);
  EXPECT_EQ(run.state.epoch, 4);
  EXPECT_EQ(run.state.samples, 96);
}

TEST(Trainer, Learns) {
  auto config = tiny_config();
  config.scheduler.num_epochs = 40;
  const auto losses = run_tiny(2, config)[0].losses;
  const auto sum = [](auto begin) { return std::accumulate(begin, begin + 6, 0.0); };
  EXPECT_LT(sum(losses.end() - 6), sum(losses.begin()) * 0.7);
}

// One rank with batches of 4 and two with 2 each see the same global batches.
TEST(Trainer, TwoRanksComputeWhatOneWould) {
  auto config = tiny_config();
  const TinyHooks hooks{.with_norm = false};
  const auto one = run_tiny(1, config, hooks);
  config.train.loader.batch_size = 2;
  const auto two = run_tiny(2, config, hooks);
  ASSERT_EQ(one[0].losses.size(), two[0].losses.size());
  for (size_t i = 0; i < one[0].losses.size(); ++i) {
    EXPECT_NEAR(one[0].losses[i], two[0].losses[i], 1e-5) << "step " << i;
  }
}

// The same with batch norm, when it takes its statistics from both ranks.
TEST(Trainer, SynchronisedBatchNormIsThatOfOneRank) {
  auto config = tiny_config();
  const auto one = run_tiny(1, config);
  config.train.loader.batch_size = 2;
  const auto apart = run_tiny(2, config);
  config.parallel.sync_bn = true;
  const auto two = run_tiny(2, config);
  const auto difference = [&](const std::vector<TinyRun>& runs, size_t i) {
    return std::abs(one[0].losses[i] - runs[0].losses[i]);
  };
  for (size_t i = 0; i < one[0].losses.size(); ++i) EXPECT_LT(difference(two, i), 1e-4) << i;
  EXPECT_GT(difference(apart, 0), 1e-3);
  EXPECT_TRUE(same_weights(two[0], two[1]));
}

TEST(Trainer, RefusesToSynchroniseBatchNormThatIsNotThere) {
  auto config = tiny_config();
  config.parallel.sync_bn = true;
  TinyHooks hooks{.with_norm = false};
  hooks.model = [](int, TinyModel& model) { model.unregister_module("norm"); };
  const auto error = error_of([&] { run_tiny(2, config, hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "parallel.sync_bn is True, but the network has no batch norm layer");
}

TEST(Trainer, KnowsTheHooksAndGraphsOfItsConfiguration) {
  const auto plain = run_tiny(2, tiny_config());
  for (const auto& hook : comm_hook_names()) {
    auto config = tiny_config();
    config.parallel.comm_hook = hook;
    const auto runs = run_tiny(2, config);
    EXPECT_TRUE(same_weights(runs[0], runs[1], kTinyParameters)) << hook;
    if (hook == "auto") continue;                             // has chosen by time before the end
    const bool exact = hook == "none" || hook == "powersgd";  // at first
    EXPECT_EQ(same_weights(runs[0], plain[0]), exact) << hook;
  }
  auto unused = tiny_config(), fixed = tiny_config();
  unused.parallel.find_unused_parameters = fixed.parallel.static_graph = true;
  EXPECT_TRUE(same_weights(run_tiny(2, unused)[0], plain[0]));
  EXPECT_TRUE(same_weights(run_tiny(2, fixed)[0], plain[0]));
}

/// The timings of every micro-step.
struct Timekeeper final : Callback {
  explicit Timekeeper(std::vector<StepTimings>& to) : all(to) {}
  void on_step(Trainer&, const StepReport& report) override { all.push_back(report.timings); }
  std::vector<StepTimings>& all;
};

TEST(Trainer, ReportsWhereTheTimeOfAnAveragedStepWent) {
  auto config = tiny_config();
  config.train.loader.batch_size = 2;
  config.train.gradient_accumulation_steps = 2;
  for (const bool measured : {false, true}) {
    config.parallel.measure_wait = measured;
    std::array<std::vector<StepTimings>, 2> of_rank;
    run_tiny(2, config, {.add_callbacks = [&](Trainer& trainer) {
               auto& list = of_rank[static_cast<size_t>(trainer.rank())];
               trainer.add(std::make_shared<Timekeeper>(list));
             }});
    ASSERT_EQ(of_rank[0].size(), of_rank[1].size());
    double longest_wait = 0;
    for (size_t i = 0; i < of_rank[0].size(); ++i) {
      const bool averaged = i % 2 == 1;  // the others only accumulate
      for (const auto& list : of_rank) {
        EXPECT_EQ(list[i].forward > 0, averaged) << i;
        EXPECT_EQ(list[i].backward > 0, averaged) << i;
        EXPECT_GE(list[i].backward, list[i].comm_exposed) << i;
      }
      const auto [least, most] =
          std::minmax(of_rank[0][i].slowest_wait, of_rank[1][i].slowest_wait);
      EXPECT_EQ(least, 0) << "of the slowest, step " << i;
      longest_wait = std::max(longest_wait, most);
    }
    EXPECT_EQ(longest_wait > 0, measured);
  }
}

TEST(Trainer, TheAveragingOfBuffersOverShardsIsTimeTogether) {
  for (const int64_t shards : {0, 2}) {
    auto config = tiny_config();
    config.parallel.shards = shards;
    std::array<std::vector<StepTimings>, 2> of_rank;
    run_tiny(2, config, {.add_callbacks = [&](Trainer& trainer) {
               auto& list = of_rank[static_cast<size_t>(trainer.rank())];
               trainer.add(std::make_shared<Timekeeper>(list));
             }});
    for (const auto& list : of_rank) {
      for (const auto& timings : list) EXPECT_EQ(timings.folding > 0, shards > 0);
    }
  }
}

/// Takes its time on one rank; sums the waits of all.
struct Straggler final : Callback {
  Straggler(int slow_rank, std::array<WaitSums, 2>& to) : slow(slow_rank), of_rank(to) {}
  void on_step(Trainer& trainer, const StepReport& report) override {
    of_rank[static_cast<size_t>(trainer.rank())].add(report.waits, report.step_s);
    if (trainer.rank() == slow) std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
  int slow;
  std::array<WaitSums, 2>& of_rank;
};

void expect_the_slow_rank_named(const Config& config) {
  for (const int slow : {0, 1}) {
    std::array<WaitSums, 2> of_rank;
    run_tiny(2, config, {.add_callbacks = [&](Trainer& trainer) {
               trainer.add(std::make_shared<Straggler>(slow, of_rank));
             }});
    const WaitSums& fast = of_rank[static_cast<size_t>(1 - slow)];
    EXPECT_GT(fast.waited_s(), 2 * fast.moved_s()) << fast.text();
    EXPECT_EQ(fast.text().find(fmt::format("waiting for rank {}: ", slow)), 0U) << fast.text();
    const WaitSums& own = of_rank[static_cast<size_t>(slow)];
    EXPECT_LT(own.waited_s(), fast.waited_s() / 2) << own.text();
    EXPECT_NE(own.text().find("others waited for this rank: "), std::string::npos) << own.text();
  }
}

TEST(Trainer, WaitingForASlowRankIsNoCommunication) {
  expect_the_slow_rank_named(tiny_config());
}

TEST(Trainer, WaitingForASlowRankInBatchNormIsToldToo) {
  auto config = tiny_config();
  config.parallel.sync_bn = true;
  expect_the_slow_rank_named(config);
}

TEST(Trainer, RanksAndRunsAreEqualBitForBit) {
  const auto first = run_tiny(2, tiny_config());
  const auto second = run_tiny(2, tiny_config());
  EXPECT_TRUE(same_weights(first[0], first[1], kTinyParameters));
  EXPECT_TRUE(same_weights(first[0], second[0]));
  EXPECT_EQ(first[0].losses, second[1].losses);
}

TEST(Trainer, AccumulationIsALargerBatch) {
  auto config = tiny_config();
  config.scheduler.scheduler = "constant";
  config.train.loader.shuffle = false;
  const TinyHooks hooks{.with_norm = false};
  const auto large = run_tiny(1, config, hooks)[0];
  config.train.loader.batch_size = 2;
  config.train.gradient_accumulation_steps = 2;
  const auto small = run_tiny(1, config, hooks)[0];
  EXPECT_EQ(small.state.step, large.state.step);
  for (size_t i = 0; i < kTinyParameters; ++i) {
    EXPECT_TRUE(small.weights[i].allclose(large.weights[i], 1e-4, 1e-6)) << i;
  }
}

// Batches of 5, 5, 5, 5 and 4 samples are one of 24: the short one counts for its samples.
TEST(Trainer, AccumulationIsTheMeanOverSamples) {
  auto config = tiny_config();
  config.scheduler.scheduler = "constant";
  config.scheduler.lr = 1;
  config.scheduler.num_epochs = 2;
  config.optimizer.momentum = 0;
  config.train.loader = {.shuffle = false, .batch_size = 24, .drop_remainder = false};
  const TinyHooks hooks{.with_norm = false};
  const auto large = run_tiny(1, config, hooks)[0];
  config.train.loader.batch_size = 5;
  config.train.gradient_accumulation_steps = 5;
  const auto small = run_tiny(1, config, hooks)[0];
  EXPECT_EQ(small.losses.size(), 10u);
  EXPECT_EQ(small.state.step, 2);
  for (size_t i = 0; i < kTinyParameters; ++i) {
    EXPECT_TRUE(small.weights[i].allclose(large.weights[i], 1e-4, 1e-6)) << i;
  }
}

TEST(Trainer, ClippingBoundsTheStep) {
  auto config = tiny_config();
  config.optimizer.momentum = 0;
  config.train.clip_grad = true;
  config.train.clip_norm = 1e-9;
  config.train.max_steps = 1;
  const auto run = run_tiny(2, config);
  config.train.max_steps = 2;
  const auto more = run_tiny(2, config);
  EXPECT_TRUE(run[0].weights[0].allclose(more[0].weights[0], 0, 1e-8));
}

TEST(Trainer, NoFiniteLossNamesStepAndRank) {
  TinyHooks hooks;
  hooks.model = [](int rank, TinyModel& model) { model.poisoned_call = rank == 1 ? 8 : 0; };
  const auto error = error_of([&] { run_tiny(3, tiny_config(), hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  EXPECT_EQ(std::string(error.what()).find("epoch: 4 step: 2. Invalid loss"), 0u) << error.what();
  EXPECT_NE(std::string(error.what()).find("on rank 1."), std::string::npos) << error.what();
}

class Stop : public ::testing::TestWithParam<std::pair<int, StopReason>> {};
INSTANTIATE_TEST_SUITE_P(Signals, Stop,
                         ::testing::Values(std::pair{SIGTERM, StopReason::kSigterm},
                                           std::pair{SIGINT, StopReason::kSigint},
                                           std::pair{SIGHUP, StopReason::kSighup}));

TEST_P(Stop, ASignalOnOneRankStopsAllAfterTheSameStep) {
  const auto [signal, reason] = GetParam();
  auto config = tiny_config();
  config.train.gradient_accumulation_steps = 2;
  TinyHooks hooks;
  hooks.signal = [number = signal](int rank, int64_t step) {
    return rank == 1 && step >= 2 ? number : 0;
  };
  const auto runs = run_tiny(2, config, hooks);
  for (const auto& run : runs) {
    EXPECT_EQ(run.reason, reason);
    EXPECT_EQ(run.state.step, 3);
  }
  EXPECT_TRUE(same_weights(runs[0], runs[1], kTinyParameters));
}

// Other nodes' launchers may know that the job goes on where the one of the signal does not.
TEST(Trainer, ASigtermAfterWhichTheJobGoesOnIsNoEnd) {
  for (const bool goes_on : {false, true}) {
    TinyHooks hooks;
    hooks.signal = [](int rank, int64_t step) { return rank == 1 && step >= 2 ? SIGTERM : 0; };
    hooks.job_goes_on = [goes_on](int rank) { return rank == 0 && goes_on; };
    for (const auto& run : run_tiny(2, tiny_config(), hooks)) {
      EXPECT_EQ(run.reason, goes_on ? StopReason::kMembership : StopReason::kSigterm);
    }
  }
  EXPECT_EQ(signal_of(StopReason::kMembership), SIGTERM) << "the launcher's workers end by it";
}

class CountEvaluations final : public Callback {
 public:
  void on_evaluation(Trainer&, const EvalResult&) override { ++count; }
  int count = 0;
};

TEST(Trainer, ASignalAtAnEpochsEndDoesNotWaitForEvaluation) {
  for (const bool signalled : {false, true}) {
    auto config = tiny_config();
    config.scheduler.num_epochs = 1;
    auto data = std::make_shared<const TinyData>();
    const std::vector<DistributedSampler> samplers = {{data->size(), 0, 1, {.shuffle = false}}};
    Loader loader(data, ImageTransform({Normalize{}}, data->shape(), 0), {.batch_size = 4});
    const auto counter = std::make_shared<CountEvaluations>();
    TinyHooks hooks;
    hooks.signal = [=](int, int64_t step) { return signalled && step == 5 ? SIGTERM : 0; };
    hooks.add_callbacks = [&](Trainer& trainer) {
      trainer.add(std::make_shared<Evaluation>(loader, samplers));
      trainer.add(counter);
    };
    const auto run = run_tiny(1, config, hooks)[0];
    EXPECT_EQ(run.state.epoch, 1);
    EXPECT_EQ(run.reason, signalled ? StopReason::kSigterm : StopReason::kEpochsDone);
    EXPECT_EQ(counter->count, signalled ? 0 : 1);
  }
}

/// What a run of one rank needs to be judged, recorded and saved.
class JudgedRun {
 public:
  void add_callbacks(Trainer& trainer) {
    trainer.add(std::make_shared<Results>());
    trainer.add(std::make_shared<Checkpoints>(log_));
    trainer.add(std::make_shared<Evaluation>(loader_, samplers_));
  }

 private:
  std::shared_ptr<const TinyData> data_ = std::make_shared<const TinyData>();
  std::vector<DistributedSampler> samplers_ = {{data_->size(), 0, 1, {.shuffle = false}}};
  Loader loader_{data_, ImageTransform({Normalize{}}, data_->shape(), 0), {.batch_size = 4}};
  TrainingLog log_{{.file = {}, .console = false}};
};

/// Three epochs of 6 steps, each evaluated; a signal at the end of the second, then on.
TEST(Trainer, AnEpochThatASignalLeftUnjudgedIsJudgedWhenTheRunGoesOn) {
  std::vector<std::vector<std::vector<std::string>>> results;
  std::vector<TrainingState> states;
  for (const bool signalled : {false, true}) {
    const TempFolder dir;
    auto config = tiny_config();
    config.scheduler.num_epochs = 3;
    config.train.ckpt_save_dir = dir.path();
    config.system.val_while_train = true;
    JudgedRun run;
    TinyHooks hooks;
    hooks.add_callbacks = [&](Trainer& trainer) { run.add_callbacks(trainer); };
    hooks.signal = [=](int, int64_t step) { return signalled && step == 11 ? SIGTERM : 0; };
    auto state = run_tiny(1, config, hooks)[0].state;
    if (signalled) {
      EXPECT_EQ(state.step, 12);
      EXPECT_EQ(state.history.size(), 1u);
      hooks.signal = [](int, int64_t) { return 0; };
      hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
        return load_checkpoint(dir.path(), model, optimizer, config.model.name());
      };
      state = run_tiny(1, config, hooks)[0].state;
    }
    states.push_back(state);
    auto& rows = results.emplace_back();
    for (const auto& line : split(read_file(dir / "result.log"), '\n')) {
      auto cells = split(line, '\t');
      cells.resize(std::min<size_t>(cells.size(), 4));  // not the times
      rows.push_back(cells);
    }
  }
  EXPECT_EQ(states[1].history, states[0].history);
  EXPECT_EQ(states[1].best, states[0].best);
  EXPECT_EQ(results[1], results[0]);
}

/// Tells that somebody has read it.
class ReadData final : public ImageDataset {
 public:
  explicit ReadData(std::atomic<bool>& read) : read_(read) {}
  int64_t size() const override { return data_.size(); }
  ImageShape shape() const override { return data_.shape(); }
  int64_t label(int64_t index) const override { return data_.label(index); }
  int64_t num_classes() const override { return data_.num_classes(); }
  std::span<const uint8_t> image(int64_t index) const override {
    read_ = true;
    return data_.image(index);
  }

 private:
  TinyData data_;
  std::atomic<bool>& read_;
};

// The signal comes to one rank once evaluation is under way.
TEST(Trainer, ASignalDuringEvaluationSavesAndEndsOnAllRanks) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.system.val_while_train = true;
  std::atomic<bool> evaluating = false;
  const auto data = std::make_shared<const ReadData>(evaluating);
  const auto counter = std::make_shared<CountEvaluations>();
  std::vector<std::unique_ptr<Loader>> loaders(2);
  for (auto& loader : loaders) {
    loader = std::make_unique<Loader>(data, ImageTransform({Normalize{}}, data->shape(), 0),
                                      LoaderOptions{.batch_size = 1});
  }
  const std::vector<std::vector<DistributedSampler>> samplers = {{{data->size(), 0, 2}},
                                                                 {{data->size(), 1, 2}}};
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  // The first batch is read before step 1 to try it out.
  hooks.signal = [&](int rank, int64_t step) {
    return rank == 1 && step == 3 && evaluating ? SIGTERM : 0;
  };
  hooks.add_callbacks = [&](Trainer& trainer) {
    const auto rank = static_cast<size_t>(trainer.rank());
    trainer.add(std::make_shared<Evaluation>(*loaders[rank], samplers[rank]));
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(counter);
  };
  const auto runs = run_tiny(2, config, hooks);
  for (const auto& run : runs) {
    EXPECT_EQ(run.reason, StopReason::kSigterm);
    EXPECT_EQ(run.state.step, 3);
    EXPECT_EQ(run.state.epoch, 1);
  }
  EXPECT_EQ(counter->count, 0);
  EXPECT_EQ(std::filesystem::read_symlink(dir / "latest"), "step_000003");
}

/// Trains to `first` steps with checkpoints, then goes on to the end in a second run.
TinyRun interrupted(int ranks, Config config, int64_t first, const std::filesystem::path& dir) {
  config.train.ckpt_save_dir = dir;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<Results>());
  };
  config.train.max_steps = first;
  run_tiny(ranks, config, hooks);
  config.train.max_steps = 0;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir, model, optimizer, config.model.name());
  };
  auto run = run_tiny(ranks, config, hooks)[0];
  EXPECT_EQ(run.losses.size(), static_cast<size_t>(run.state.step - first));
  return run;
}

class Resume : public ::testing::TestWithParam<std::tuple<int, std::string, int>> {};

TEST_P(Resume, GivesTheBitsOfTheUndisturbedRun) {
  const auto [ranks, opt, first] = GetParam();
  auto config = tiny_config();
  config.optimizer.opt = opt;
  config.optimizer.nesterov = opt == "sgd";
  config.optimizer.weight_decay = 0.01;
  config.train.loader.batch_size = 4 / ranks;
  const auto whole = run_tiny(ranks, config);
  const TempFolder dir;
  const auto parts = interrupted(ranks, config, first, dir.path());
  EXPECT_TRUE(same_weights(whole[0], parts));
  const auto& losses = whole[0].epoch_losses;
  EXPECT_EQ(parts.epoch_losses, std::vector<double>(losses.begin() + 1, losses.end()));
}

// 6 steps are an epoch; 8 end within one.
INSTANTIATE_TEST_SUITE_P(All, Resume,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Values("sgd", "adamw"),
                                            ::testing::Values(6, 8)));

// Hooks that remember what they have not sent; 8 steps end within an epoch of 6.
TEST(Trainer, GoesOnWithWhatAHookRemembers) {
  auto config = tiny_config();
  config.parallel.comm_hook = "int8";
  config.train.loader.batch_size = 2;
  const auto whole = run_tiny(2, config);
  const TempFolder dir;
  config.train.ckpt_save_dir = dir.path();
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  config.train.max_steps = 8;
  run_tiny(2, config, hooks);
  config.train.max_steps = 0;
  TinyHooks resumed;
  resumed.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  EXPECT_FALSE(same_weights(run_tiny(2, config, resumed)[0], whole[0])) << "the state matters";
  resumed.averaging = [&](int rank) { return load_averaging(dir.path(), rank); };
  std::array<std::string, 2> notes;
  resumed.add_callbacks = [&](Trainer& trainer) {
    notes[static_cast<size_t>(trainer.rank())] = trainer.averaging_note();
  };
  EXPECT_TRUE(same_weights(run_tiny(2, config, resumed)[0], whole[0]));
  EXPECT_EQ(notes, (std::array<std::string, 2>{}));
  config.parallel.comm_hook = "bf16";
  run_tiny(2, config, resumed);
  EXPECT_EQ(notes[1], "it is that of comm_hook int8, this run has bf16");
  config.parallel.comm_hook = "int8";
  config.train.loader.batch_size = 4;
  resumed.start = nullptr;
  run_tiny(1, config, resumed);
  EXPECT_EQ(notes[0], "it is that of 2 ranks, this run has 1");
}

TEST(Trainer, ResultsOfAResumedRunAreWhole) {
  const TempFolder dir;
  interrupted(1, tiny_config(), 8, dir.path());
  const auto records = read_metrics(dir / "metrics.jsonl");
  ASSERT_EQ(records.size(), 24u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].step, static_cast<int64_t>(i) + 1);
  }
  EXPECT_TRUE(std::filesystem::exists(dir / "result.log"));
  EXPECT_TRUE(std::filesystem::exists(dir / "best"));
}

// The weights of step 8, within an epoch of 6, are judged by the first run that ends there.
TEST(Trainer, ARunThatHasNothingLeftToDoJudgesNothingAgain) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  config.system.val_while_train = true;
  JudgedRun run;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { run.add_callbacks(trainer); };
  const auto first = run_tiny(1, config, hooks)[0].state;
  EXPECT_EQ(first.history.size(), 2U);
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  EXPECT_EQ(run_tiny(1, config, hooks)[0].state.history, first.history);
  EXPECT_EQ(read_metrics(dir / "metrics.jsonl").size(), 8U + 2U);
}

/// Judges each epoch's weights by its number.
class Judge final : public Callback {
 public:
  void on_epoch(Trainer& trainer, const EpochReport& report) override {
    EvalResult result;
    result.metrics = {{"acc", static_cast<double>(report.epoch) / 10}};
    trainer.evaluated(result);
  }
};

// The losses of the first two epochs are above any accuracy.
TEST(Trainer, GoingOnWithAnotherMetricRanksAnew) {
  const TempFolder dir;
  TrainingLog log({.file = {}, .console = false});
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.system.ckpt_save_policy = "top_k";
  config.system.ckpt_max_keep = 2;
  config.system.val_while_train = false;
  config.scheduler.num_epochs = 2;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  EXPECT_GT(run_tiny(1, config, hooks)[0].state.best->value, 1);
  config.system.val_while_train = true;
  config.scheduler.num_epochs = 4;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Judge>());
    trainer.add(std::make_shared<Checkpoints>(log));
  };
  const auto state = run_tiny(1, config, hooks)[0].state;
  EXPECT_EQ(state.best, (MetricPoint{4, 24, 0.4}));
  EXPECT_EQ(state.history.size(), 2u);
  EXPECT_EQ(std::filesystem::read_symlink(dir / "best"), "step_000024");
  EXPECT_TRUE(std::filesystem::exists(dir / "step_000018"));
}

/// A run that goes on after 2 batches of 4 in its second epoch, the first having had 20 samples.
TinyHooks from_within_an_epoch(int64_t epoch_samples = 8) {
  TinyHooks hooks;
  hooks.start = [=](torch::nn::Module&, torch::optim::Optimizer&) {
    TrainingState state;
    state.epoch = 1;
    state.step = 6;
    state.batch_in_epoch = 2;
    state.samples = 20 + epoch_samples;
    state.epoch_samples = epoch_samples;
    return state;
  };
  return hooks;
}

TEST(Trainer, GoesOnWithinAnEpochWhateverTheEpochsBefore) {
  EXPECT_EQ(run_tiny(1, tiny_config(), from_within_an_epoch())[0].losses.size(), 6u * 3 - 2);
}

TEST(Trainer, RefusesToGoOnWithinAnEpochOfFewerSamples) {
  const auto error = error_of([&] { run_tiny(1, tiny_config(), from_within_an_epoch(24)); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("after 24 of its samples, and the data have 24"),
            std::string::npos)
      << error.what();
}

// 4 of 24 were taken in batches of 2 of one rank. The other 20 are 5 steps of 4, the last of 6.
TEST(Trainer, GoesOnWithinAnEpochOfOtherBatches) {
  const auto run = run_tiny(1, tiny_config(), from_within_an_epoch(4))[0];
  EXPECT_EQ(run.losses.size(), 5U + 2 * 6);
  EXPECT_EQ(run.taken.at(1).size(), 20U);
  EXPECT_EQ(
      run.dealing,
      "4 of 24 samples of epoch 2 were used by 1 rank; the rest is dealt to 1 in 5 steps, and "
      "an epoch's steps are counted for 1 rank from here: [1/6] are done");
}

TEST(Trainer, GoesOnWithinAnEpochOnOtherShards) {
  auto config = tiny_config();
  config.parallel.shards = 2;
  config.train.loader.batch_size = 2;
  const auto run = run_tiny(1, config, from_within_an_epoch())[0];
  EXPECT_EQ(run.taken.at(1).size(), 16U);
  EXPECT_EQ(run.state.epoch, 4);
}

// 16 samples are left, 4 steps: one optimizer step of 3 and one of the last.
TEST(Trainer, CountsOptimizerStepsFromWhereItTookAnEpochUp) {
  auto config = tiny_config();
  config.train.gradient_accumulation_steps = 3;
  const auto run = run_tiny(1, config, from_within_an_epoch())[0];
  EXPECT_EQ(run.state.step, 6 + 2 + 2 * 2);
}

// Epochs of 6 steps. Batches that nobody would take are not made ahead.
TEST(Trainer, TellsTheNextEpochAheadButForTheLast) {
  using Epochs = std::vector<int64_t>;
  auto config = tiny_config();
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, (Epochs{1, 2, 3}));
  config.train.max_steps = 12;
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, Epochs{1});
  config.train.max_steps = 13;
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, (Epochs{1, 2}));
  config.train.gradient_accumulation_steps = 4;  // 2 optimizer steps an epoch
  config.train.max_steps = 4;
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, Epochs{1});
  EXPECT_EQ(run_tiny(1, tiny_config(), from_within_an_epoch())[0].told_ahead, (Epochs{2, 3}));
}

struct Membership {
  int ranks;
  int64_t steps;  ///< That this generation makes in all generations' count.
};

/// Samples over all ranks, by epoch, of a job whose ranks come and go; the state at its end.
TrainingState run_elastic(const std::vector<Membership>& generations, Config config,
                          std::map<int64_t, std::vector<int64_t>>& taken,
                          std::vector<double>& lrs) {
  const TempFolder dir;
  config.train.ckpt_save_dir = dir.path();
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;  // with batch norm, which cannot take a batch of one sample
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  TrainingState state;
  for (const auto& generation : generations) {
    config.train.max_steps = generation.steps;
    const auto runs = run_tiny(generation.ranks, config, hooks);
    for (const auto& run : runs) {
      for (const auto& [epoch, samples] : run.taken) {
        taken[epoch].insert(taken[epoch].end(), samples.begin(), samples.end());
      }
    }
    lrs.insert(lrs.end(), runs[0].lrs.begin(), runs[0].lrs.end());
    state = runs[0].state;
    hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
      return load_checkpoint(dir.path(), model, optimizer, config.model.name());
    };
  }
  return state;
}

// Joins, losses, and both within an epoch, more than once.
TEST(Trainer, EverySampleOfAnEpochIsUsedOnceWhateverBecomesOfTheRanks) {
  auto config = tiny_config();
  config.train.loader = {.shuffle = true, .batch_size = 2, .drop_remainder = false};
  config.scheduler.num_epochs = 3;
  for (const auto& generations : std::vector<std::vector<Membership>>{
           {{1, 5}, {2, 0}},                          // a join
           {{2, 2}, {1, 0}},                          // a loss
           {{3, 1}, {2, 2}, {4, 3}, {1, 6}, {3, 0}},  // both, thrice in an epoch
           {{1, 3}, {3, 5}, {2, 13}, {3, 14}, {1, 15}, {2, 0}}}) {
    std::map<int64_t, std::vector<int64_t>> taken;
    std::vector<double> lrs;
    const auto state = run_elastic(generations, config, taken, lrs);
    const std::string what = ::testing::PrintToString(generations.size()) + " generations";
    EXPECT_EQ(state.epoch, 3) << what;
    int64_t samples = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      samples += std::ssize(taken[epoch]);
      std::set<int64_t> once(taken[epoch].begin(), taken[epoch].end());
      EXPECT_EQ(once.size(), 24U) << what << ", epoch " << epoch;
      EXPECT_LT(taken[epoch].size(), 24U + 2 * 4)
          << what << ", epoch " << epoch << ": padding alone";
    }
    EXPECT_EQ(state.samples, samples) << what;
    EXPECT_TRUE(std::is_sorted(lrs.rbegin(), lrs.rend())) << what << ": the schedule goes on";
    EXPECT_EQ(lrs.front(), 0.05) << what;
  }
}

// The last epoch is one of two ranks alone: its rates are those of two ranks all along. The rest of
// the one before, of which 10 of 24 samples are used, goes on from there.
TEST(Trainer, AfterAChangeTheScheduleIsThatOfTheNewRanks) {
  auto config = tiny_config();
  config.train.loader = {.shuffle = true, .batch_size = 2, .drop_remainder = false};
  config.scheduler.num_epochs = 2;
  std::map<int64_t, std::vector<int64_t>> taken;
  std::vector<double> lrs;
  run_elastic({{1, 5}, {2, 0}}, config, taken, lrs);
  const auto two = run_tiny(2, config)[0].lrs;
  ASSERT_EQ(two.size(), 12U);
  ASSERT_EQ(lrs.size(), 5U + 4 + 6);  // 14 samples are left: 4 steps of two ranks
  EXPECT_EQ(std::vector<double>(lrs.end() - 6, lrs.end()),
            std::vector<double>(two.end() - 6, two.end()));
  for (size_t i = 0; i < 4; ++i) {
    const double step = 6 * (10 + 4 * static_cast<double>(i)) / 24;
    EXPECT_DOUBLE_EQ(lrs[5 + i], learning_rate(config.scheduler, step, 6)) << i;
  }
}

// One epoch of one rank is 6 steps with drop_remainder; 2 samples cannot make a batch of 3 ranks.
TEST(Trainer, AnEpochOfWhichNoBatchIsLeftEnds) {
  auto config = tiny_config();
  config.scheduler.num_epochs = 2;
  std::map<int64_t, std::vector<int64_t>> taken;
  std::vector<double> lrs;
  const auto state = run_elastic({{1, 5}, {3, 0}}, config, taken, lrs);
  EXPECT_EQ(state.epoch, 2);
  EXPECT_EQ(taken[0].size(), 20U);
  EXPECT_EQ(taken[1].size(), 24U);
}

/// Fails when an epoch is to be judged.
class BrokenEvaluation final : public Callback {
 public:
  void on_epoch(Trainer&, const EpochReport&) override {
    throw Error(ErrorCode::kInternal, "evaluation is broken");
  }
};

TEST(Trainer, AnEvaluationThatFailsCostsNoEpoch) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.system.val_while_train = true;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<BrokenEvaluation>());
  };
  EXPECT_EQ(error_of([&] { run_tiny(1, config, hooks); }).code(), ErrorCode::kInternal);
  EXPECT_EQ(std::filesystem::read_symlink(dir / "latest"), "step_000006");
}

/// A data set that cannot be read from some sample on.
class ShortData final : public ImageDataset {
 public:
  int64_t size() const override { return all_.size(); }
  ImageShape shape() const override { return all_.shape(); }
  int64_t label(int64_t index) const override { return all_.label(index); }
  int64_t num_classes() const override { return all_.num_classes(); }
  std::span<const uint8_t> image(int64_t) const override {
    throw Error(ErrorCode::kCorrupt, "no picture");
  }

 private:
  TinyData all_;
};

TEST(Trainer, AnEvaluationThatCannotWorkIsKnownBeforeTheFirstStep) {
  auto config = tiny_config();
  const auto data = std::make_shared<const ShortData>();
  const std::vector<DistributedSampler> samplers = {{data->size(), 0, 1, {.shuffle = false}}};
  Loader loader(data, ImageTransform({Normalize{}}, data->shape(), 0), {.batch_size = 4});
  int64_t steps = 0;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Evaluation>(loader, samplers));
  };
  hooks.signal = [&](int, int64_t) { return ++steps, 0; };
  const auto error = error_of([&] { run_tiny(1, config, hooks); });
  EXPECT_STREQ(error.what(), "evaluation, tried with one batch before training: no picture");
  EXPECT_EQ(steps, 0);
}

/// What the evaluations of a rank's run came to.
class EvaluationLog final : public Callback {
 public:
  void on_evaluation(Trainer& trainer, const EvalResult&) override {
    judged.push_back(trainer.state().step);
  }
  void on_evaluation_failed(Trainer&, const std::string& why) override { failed.push_back(why); }
  std::vector<int64_t> judged;
  std::vector<std::string> failed;
};

/// Readable in one batch, which is tried out; `broken`: on this rank no more from then on.
class LaterShortData final : public ImageDataset {
 public:
  explicit LaterShortData(bool broken) : broken_(broken) {}
  int64_t size() const override { return all_.size(); }
  ImageShape shape() const override { return all_.shape(); }
  int64_t label(int64_t index) const override { return all_.label(index); }
  int64_t num_classes() const override { return all_.num_classes(); }
  std::span<const uint8_t> image(int64_t index) const override {
    if (broken_ && index > 2) throw Error(ErrorCode::kCorrupt, fmt::format("no picture {}", index));
    return all_.image(index);
  }

 private:
  TinyData all_;
  bool broken_;
};

/// Runs of two ranks that are saved and judged; rank 1 cannot judge all pictures.
TinyRun run_unjudgeable(const Config& config, std::vector<EvaluationLog>& logs, TinyHooks hooks) {
  std::vector<std::vector<DistributedSampler>> samplers;
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < 2; ++rank) {
    const auto data = std::make_shared<const LaterShortData>(rank == 1);
    samplers.push_back({{data->size(), rank, 2, {.shuffle = false}}});
    loaders.push_back(std::make_unique<Loader>(
        data, ImageTransform({Normalize{}}, data->shape(), 0), LoaderOptions{.batch_size = 1}));
  }
  std::vector<std::shared_ptr<EvaluationLog>> of_rank;
  for (int rank = 0; rank < 2; ++rank) of_rank.push_back(std::make_shared<EvaluationLog>());
  TrainingLog log({.file = {}, .console = false});
  hooks.add_callbacks = [&](Trainer& trainer) {
    const auto rank = static_cast<size_t>(trainer.rank());
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<Evaluation>(*loaders[rank], samplers[rank]));
    trainer.add(of_rank[rank]);
  };
  const auto run = run_tiny(2, config, hooks)[0];
  logs = {*of_rank[0], *of_rank[1]};
  return run;
}

TEST(Trainer, AnEvaluationThatFailsEndsNoRunNorStopsOneThatGoesOn) {
  const TempFolder dir;
  auto config = tiny_config();
  config.scheduler.num_epochs = 2;
  config.train.ckpt_save_dir = dir.path();
  config.system.val_while_train = true;
  std::vector<EvaluationLog> logs;
  const auto whole = run_unjudgeable(config, logs, {});
  EXPECT_EQ(whole.state.epoch, 2);
  EXPECT_TRUE(whole.state.history.empty());
  for (const auto& log : logs) {
    EXPECT_TRUE(log.judged.empty());
    EXPECT_EQ(log.failed, std::vector<std::string>(2, "on rank 1: no picture 3"));
  }
  EXPECT_EQ(std::filesystem::read_symlink(dir / "latest"), "step_000006");
  // Judged at once, because nobody did so before; then the third epoch.
  config.scheduler.num_epochs = 3;
  TinyHooks hooks;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  const auto more = run_unjudgeable(config, logs, hooks);
  EXPECT_EQ(more.state.epoch, 3);
  EXPECT_EQ(more.losses.size(), 3u);
  EXPECT_EQ(logs[0].failed.size(), 2u);
  EXPECT_EQ(std::filesystem::read_symlink(dir / "latest"), "step_000009");
}

TEST(Trainer, AMainIndicatorThatNobodyGivesIsRefusedAtOnce) {
  auto config = tiny_config();
  config.system.val_while_train = true;
  config.metric.main_indicator = "f-score";
  EXPECT_STREQ(error_of([&] { run_tiny(1, config); }).what(),
               "metric.main_indicator is 'f-score', evaluation gives acc, top_5");
}

TEST(Trainer, APartOfAnEpochHasARowOfResults) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  config.system.val_while_train = true;
  JudgedRun run;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { run.add_callbacks(trainer); };
  run_tiny(1, config, hooks);
  const auto rows = [&] {
    std::vector<std::string> lines = split(read_file(dir / "result.log"), '\n');
    lines.pop_back();
    return lines;
  };
  ASSERT_EQ(rows().size(), 3U);
  EXPECT_TRUE(rows()[2].starts_with("2\t"));
  EXPECT_EQ(rows()[2].find("NA"), std::string::npos) << rows()[2];
  // Who goes on writes that row anew.
  config.train.max_steps = 0;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  run_tiny(1, config, hooks);
  ASSERT_EQ(rows().size(), 5U);
  for (size_t epoch = 1; epoch <= 4; ++epoch) {
    EXPECT_TRUE(rows()[epoch].starts_with(std::to_string(epoch) + "\t")) << rows()[epoch];
    EXPECT_EQ(rows()[epoch].find("NA"), std::string::npos) << rows()[epoch];
  }
}

TEST(Trainer, AnEpochsTimeIsThatOfAllRunsThatHadAPartInIt) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  config.system.val_while_train = true;
  JudgedRun run;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { run.add_callbacks(trainer); };
  EXPECT_GT(run_tiny(1, config, hooks)[0].state.epoch_seconds, 0);
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    auto state = load_checkpoint(dir.path(), model, optimizer, config.model.name());
    EXPECT_GT(state.epoch_seconds, 0) << "of the steps before";
    state.epoch_seconds = 5000;
    return state;
  };
  const auto seconds_of = [&](size_t epoch) {
    const auto row = split(split(read_file(dir / "result.log"), '\n').at(epoch), '\t');
    return std::stod(row.at(row.size() - 2));
  };
  config.train.max_steps = 10;
  run_tiny(1, config, hooks);
  EXPECT_GT(seconds_of(2), 5000) << "of a part as well";
  config.train.max_steps = 0;
  EXPECT_EQ(run_tiny(1, config, hooks)[0].state.epoch_seconds, 0);
  EXPECT_GT(seconds_of(2), 5000);
  EXPECT_LT(seconds_of(3), 5000);
}

TEST(Trainer, LossesOfShardsAreThoseOfAsManyRanks) {
  auto config = tiny_config();
  const auto ranks = run_tiny(4, config, {.with_norm = false})[0];
  config.parallel.shards = 4;
  const auto shards = run_tiny(1, config, {.with_norm = false})[0];
  EXPECT_EQ(shards.losses, ranks.losses);
  EXPECT_TRUE(same_weights(shards, ranks, kTinyParameters));
  EXPECT_EQ(shards.state.samples, ranks.state.samples);
}

TEST(Evaluate, CountsEverySampleOnceForAnyNumberOfRanks) {
  std::vector<EvalResult> results;
  for (const int ranks : {1, 2, 3, 5}) {
    std::mutex mutex;
    testing::run_rank_threads(ranks, [&](const World& world) {
      auto group = ProcessGroup::create(world);
      TinyModel model(true);
      {
        const at::NoGradGuard no_grad;
        for (auto& parameter : model.parameters()) {
          parameter.copy_(torch::arange(parameter.numel()).reshape_as(parameter).sin());
        }
      }
      auto data = std::make_shared<const TinyData>(23);
      DistributedSampler sampler(data->size(), world, {.shuffle = false});
      Loader loader(data, ImageTransform({Normalize{}}, data->shape(), 0), {.batch_size = 4});
      ClassificationTask task({}, kTinyClasses);
      const auto result = evaluate(model, loader, {&sampler, 1}, group, task);
      const std::lock_guard lock(mutex);
      results.push_back(result.value());
    });
  }
  for (const auto& result : results) {
    EXPECT_EQ(result.samples, 23);
    EXPECT_EQ(result.metrics, results[0].metrics);
    EXPECT_NEAR(result.loss.value(), results[0].loss.value(), 1e-6);
  }
  EXPECT_GT(results[0].metric("top_5"), results[0].metric("acc"));
  EXPECT_EQ(error_of([&] { (void)results[0].metric("top5"); }).what(),
            std::string("metric.main_indicator is 'top5', evaluation gives acc, top_5"));
}

TEST(Evaluate, SaysHowFarItIsAfterEachBatch) {
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    TinyModel model(false);
    auto data = std::make_shared<const TinyData>(23);
    const DistributedSampler sampler(data->size(), world, {.shuffle = false});
    Loader loader(data, ImageTransform({Normalize{}}, data->shape(), 0), {.batch_size = 4});
    ClassificationTask task({}, kTinyClasses);
    std::vector<int64_t> judged;
    EvalHooks hooks;
    hooks.judged = [&](const EvalState& state) {
      EXPECT_EQ(state.samples, sampler.num_unpadded());
      judged.push_back(state.judged);
    };
    evaluate(model, loader, {&sampler, 1}, group, task, AmpLevel::kO0, hooks);
    EXPECT_EQ(judged, (std::vector<int64_t>{4, 8, sampler.num_unpadded()}));
  });
}

TEST(Evaluate, ItsProgressIsThatOfAllRanks) {
  const auto progress = to_progress({30, 120, std::chrono::seconds(10)}, 4);
  EXPECT_EQ(format_progress(progress, 79),
            "evaluation  ━━━━━───────────────   25%  120/480  12 img/s  ETA 0:30");
}

/// Logs the batch's mean label, and in the first batches another number.
class LoggingTask final : public Task {
 public:
  explicit LoggingTask(std::unique_ptr<Task> task) : task_(std::move(task)) {}
  std::vector<std::string> log_names() const override { return {"mean_label", "sometimes"}; }
  at::Tensor loss(const at::Tensor& output, std::span<const at::Tensor> targets) override {
    log("mean_label", targets.front().to(at::kFloat).mean());
    if (batches_++ < 2) log("sometimes", at::full({}, 7));
    EXPECT_EQ(error_of([&] { log("mean_labels", at::full({}, 7)); }).code(),
              ErrorCode::kInvalidArgument);
    return task_->loss(output, targets);
  }
  std::vector<std::string> metric_names() const override { return task_->metric_names(); }
  size_t num_sums() const override { return task_->num_sums(); }
  std::vector<double> sums(const at::Tensor& output, const Batch& batch) override {
    return task_->sums(output, batch);
  }
  EvalResult result(std::span<const double> sums) override { return task_->result(sums); }

 private:
  std::unique_ptr<Task> task_;
  int batches_ = 0;
};

// Means over ranks and shards, and the norm that clipping works out.
TEST(Trainer, WhatATaskLogsIsInTheMetrics) {
  std::vector<std::vector<double>> means;
  for (const int ranks : {1, 2}) {
    const TempFolder dir;
    auto config = tiny_config();
    config.parallel.shards = 2;
    config.train.clip_grad = true;
    config.train.clip_norm = 1e-3;
    config.train.ckpt_save_dir = dir.path();
    TinyHooks hooks;
    hooks.task = [](const Config& own) { return std::make_unique<LoggingTask>(make_task(own)); };
    hooks.add_callbacks = [](Trainer& trainer) { trainer.add(std::make_shared<Results>()); };
    run_tiny(ranks, config, hooks);
    const auto records = read_metrics(dir / "metrics.jsonl");
    ASSERT_EQ(records.size(), 12u);
    auto& own = means.emplace_back();
    for (const auto& record : records) {
      own.push_back(record.value("mean_label").value());
      EXPECT_GT(record.value("grad_norm").value(), 1e-3);
    }
    EXPECT_EQ(records[0].value("sometimes"), 7);
    EXPECT_TRUE(std::isnan(records[5].value("sometimes").value()));
  }
  EXPECT_EQ(means[0], means[1]);
}

TEST(Trainer, GroupsWithoutRatesOfTheirOwnFollowTheSchedule) {
  struct Rates final : Callback {
    void on_step(Trainer& trainer, const StepReport& report) override {
      for (auto& group : trainer.optimizer().param_groups()) {
        EXPECT_EQ(group.options().get_lr(), report.lr);  // of make_optimizer(): the schedule's
      }
    }
  };
  TinyHooks hooks;
  hooks.add_callbacks = [](Trainer& trainer) { trainer.add(std::make_shared<Rates>()); };
  run_tiny(1, tiny_config(), hooks);
}

}  // namespace
}  // namespace lockstep
