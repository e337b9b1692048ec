// An interrupted run resumes as if it had not been interrupted.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/trainer.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// Trains to `first` steps with checkpoints, then resumes to the end in a second run.
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

// An epoch has 6 steps; 8 end within one.
INSTANTIATE_TEST_SUITE_P(All, Resume,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Values("sgd", "adamw"),
                                            ::testing::Values(6, 8)));

// Hooks that keep unsent gradients; 8 steps end within an epoch of 6.
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

}  // namespace
}  // namespace lockstep
