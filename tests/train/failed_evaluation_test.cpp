// Runs with a failing evaluation.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/trainer.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// Fails when an epoch is evaluated.
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

/// A data set that is unreadable from some sample on.
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
  Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                {.batch_size = 4});
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

/// The results of the evaluations of a rank's run.
class EvaluationLog final : public Callback {
 public:
  void on_evaluation(Trainer& trainer, const EvalResult&) override {
    evaluated.push_back(trainer.state().step);
  }
  void on_evaluation_failed(Trainer&, const std::string& why) override { failed.push_back(why); }
  std::vector<int64_t> evaluated;
  std::vector<std::string> failed;
};

/// Readable in the one batch of the trial; if `broken`, no longer readable on this rank afterwards.
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

/// Runs of two ranks that are saved and evaluated; rank 1 cannot evaluate all pictures.
TinyRun run_that_cannot_evaluate(const Config& config, std::vector<EvaluationLog>& logs,
                                 TinyHooks hooks) {
  std::vector<std::vector<DistributedSampler>> samplers;
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < 2; ++rank) {
    const auto data = std::make_shared<const LaterShortData>(rank == 1);
    samplers.push_back({{data->size(), rank, 2, {.shuffle = false}}});
    loaders.push_back(std::make_unique<Loader>(
        image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
        LoaderOptions{.batch_size = 1}));
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
  const auto whole = run_that_cannot_evaluate(config, logs, {});
  EXPECT_EQ(whole.state.epoch, 2);
  EXPECT_TRUE(whole.state.history.empty());
  for (const auto& log : logs) {
    EXPECT_TRUE(log.evaluated.empty());
    EXPECT_EQ(log.failed, std::vector<std::string>(2, "on rank 1: no picture 3"));
  }
  EXPECT_EQ(std::filesystem::read_symlink(dir / "latest"), "step_000006");
  // Evaluated at once, because it has no figure yet; then the third epoch.
  config.scheduler.num_epochs = 3;
  TinyHooks hooks;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  const auto more = run_that_cannot_evaluate(config, logs, hooks);
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

}  // namespace
}  // namespace lockstep
