#include <gtest/gtest.h>

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Config averaged_config(const fs::path& dir) {
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir;
  config.train.ema = true;
  config.train.ema_decay = 0.999;
  config.train.weights_format = "safetensors";
  config.system.val_while_train = true;
  config.system.val_interval = 2;
  config.system.ckpt_save_policy = "";
  return config;
}

/// A run that evaluates the epochs 1 + 2k of its data, and keeps checkpoints.
TinyRun run_averaged(const Config& config, TinyHooks hooks = {}) {
  auto data = std::make_shared<const TinyData>();
  const std::vector<DistributedSampler> samplers = {{data->size(), 0, 1, {.shuffle = false}}};
  Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                {.batch_size = 4});
  TrainingLog log({.file = {}, .console = false});
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Evaluation>(loader, samplers));
    trainer.add(std::make_shared<Checkpoints>(log));
  };
  return run_tiny(1, config, hooks)[0];
}

bool same_parameters(const TensorMap& a, const TensorMap& b) {
  return a.at("first.weight").equal(b.at("first.weight")) &&
         a.at("norm.running_mean").equal(b.at("norm.running_mean"));
}

TEST(EmaTraining, EvaluatedEpochsFilesHoldTheAverageAndOthersTheWeights) {
  const TempFolder dir;
  auto config = averaged_config(dir.path());
  config.scheduler.num_epochs = 3;  // 1 and 3 are evaluated
  const auto run = run_averaged(config);
  const auto last = load_tensors(dir / "e3.safetensors").tensors;
  EXPECT_TRUE(same_parameters(last, run.average));
  EXPECT_FALSE(last.at("first.weight").equal(run.weights[0]));
  // The checkpoint has both: the weights for further training, and the average.
  const auto folder = dir / "latest";
  EXPECT_TRUE(
      load_tensors(folder / "model.safetensors").tensors.at("first.weight").equal(run.weights[0]));
  EXPECT_TRUE(same_parameters(load_tensors(folder / kEmaFile).tensors, run.average));
  const auto best = load_tensors(dir / "best.safetensors").tensors;
  const auto first = load_tensors(dir / "e1.safetensors").tensors;
  EXPECT_TRUE(same_parameters(best, last) || same_parameters(best, first));
  config.scheduler.num_epochs = 2;  // the same run, shortened: its weights are those of e2
  config.scheduler.scheduler = "constant";
  const TempFolder other;
  config.train.ckpt_save_dir = other.path();
  const auto cut = run_averaged(config);
  EXPECT_TRUE(
      load_tensors(other / "e2.safetensors").tensors.at("first.weight").equal(cut.weights[0]));
}

// A checkpoint names the best weights; their file must exist by then.
TEST(EmaTraining, TheBestWeightsAreWrittenBeforeACheckpointTellsOfThem) {
  const TempFolder dir;
  fs::create_directories(dir / "best.safetensors/in the way");
  EXPECT_EQ(error_of([&] { run_averaged(averaged_config(dir.path())); }).code(), ErrorCode::kIo);
  EXPECT_FALSE(has_checkpoint(dir.path()));
}

TEST(EmaTraining, AResumedRunHasTheBitsOfTheUndisturbedOne) {
  const TempFolder whole_dir;
  const auto whole = run_averaged(averaged_config(whole_dir.path()));
  const TempFolder dir;
  auto config = averaged_config(dir.path());
  config.train.max_steps = 8;  // within an epoch of 6
  run_averaged(config);
  config.train.max_steps = 0;
  TinyHooks hooks;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  hooks.ema_from = dir / "latest";
  const auto parts = run_averaged(config, hooks);
  EXPECT_TRUE(same_weights(whole, parts));
  EXPECT_TRUE(same_parameters(whole.average, parts.average));
  EXPECT_TRUE(whole.average.at("ema.updates").equal(parts.average.at("ema.updates")));
}

TEST(EmaTraining, WithFloat32MastersTheAverageIsTheirs) {
  const TempFolder dir;
  auto config = averaged_config(dir.path());
  config.system.amp_level = AmpLevel::kO2;
  const auto run = run_averaged(config);
  EXPECT_EQ(run.average.at("first.weight").scalar_type(), at::kFloat);
  const auto best = load_tensors(dir / "e3.safetensors").tensors;
  EXPECT_EQ(best.at("first.weight").scalar_type(), at::kFloat);
  EXPECT_FALSE(best.at("first.weight").equal(run.weights[0]));
  EXPECT_EQ(run.weights[0].scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace lockstep
