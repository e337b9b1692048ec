// Figures and rows of results of an evaluated run, also after a resume.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/observe/metrics.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/trainer.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// The parts of a run of one rank that is evaluated, recorded and saved.
class EvaluatedRun {
 public:
  void add_callbacks(Trainer& trainer) {
    trainer.add(std::make_shared<Results>());
    trainer.add(std::make_shared<Checkpoints>(log_));
    trainer.add(std::make_shared<Evaluation>(loader_, samplers_));
  }

 private:
  std::shared_ptr<const TinyData> data_ = std::make_shared<const TinyData>();
  std::vector<DistributedSampler> samplers_ = {{data_->size(), 0, 1, {.shuffle = false}}};
  Loader loader_{image_batches(data_, ImageTransform({Normalize{}}, data_->shape(), 0)),
                 {.batch_size = 4}};
  TrainingLog log_{{.file = {}, .console = false}};
};

/// Three epochs of 6 steps, each evaluated; a signal at the end of the second, then a resume.
TEST(Trainer, AnEpochThatASignalLeftIsEvaluatedWhenTheRunGoesOn) {
  std::vector<std::vector<std::vector<std::string>>> results;
  std::vector<TrainingState> states;
  for (const bool signalled : {false, true}) {
    const TempFolder dir;
    auto config = tiny_config();
    config.scheduler.num_epochs = 3;
    config.train.ckpt_save_dir = dir.path();
    config.system.val_while_train = true;
    EvaluatedRun run;
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

// The first run that ends within an epoch of 6 evaluates the weights of step 8.
TEST(Trainer, ARunThatHasNothingLeftToDoEvaluatesNothingAgain) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  config.system.val_while_train = true;
  EvaluatedRun run;
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

/// Gives each epoch's weights a figure by its number.
class EvaluatesByNumber final : public Callback {
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
  TrainingLog log({.file = dir / "log.txt", .console = false});
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
    trainer.add(std::make_shared<EvaluatesByNumber>());
    trainer.add(std::make_shared<Checkpoints>(log));
  };
  const auto state = run_tiny(1, config, hooks)[0].state;
  EXPECT_EQ(state.best, (MetricPoint{4, 24, 0.4}));
  EXPECT_EQ(state.history.size(), 2u);
  EXPECT_EQ(std::filesystem::read_symlink(dir / "best"), "step_000024");
  EXPECT_TRUE(std::filesystem::exists(dir / "step_000018"));
  const auto lines = read_file(dir / "log.txt");
  const auto warning = lines.find(
      "WARNING - ranked by acc now, and by train_loss in the run that goes on: earlier epochs have "
      "no rank, and their checkpoints are not kept as the best ones; copy those you need\n");
  EXPECT_NE(warning, std::string::npos) << lines;
  EXPECT_EQ(lines.find("ranked by"), lines.rfind("ranked by")) << "one warning: " << lines;
}

TEST(Trainer, APartOfAnEpochHasARowOfResults) {
  const TempFolder dir;
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  config.system.val_while_train = true;
  EvaluatedRun run;
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
  // A resumed run writes that row again.
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
  EvaluatedRun run;
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

}  // namespace
}  // namespace lockstep
