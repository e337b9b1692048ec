// A signal ends a run on all ranks after the same step.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/trainer.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

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

// The job may continue on other hosts although one host got the signal.
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
    Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                  {.batch_size = 4});
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

/// Signals that a sample was read.
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

// The signal comes to one rank during the evaluation.
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
    loader = std::make_unique<Loader>(
        image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
        LoaderOptions{.batch_size = 1});
  }
  const std::vector<std::vector<DistributedSampler>> samplers = {{{data->size(), 0, 2}},
                                                                 {{data->size(), 1, 2}}};
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  // The first batch is read before step 1, for the trial.
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

}  // namespace
}  // namespace lockstep
