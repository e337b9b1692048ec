// Runs with a teacher, and with several metrics.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/observe/metrics.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/trainer.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

void fill(torch::nn::Module& model, double from) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    parameter.copy_((torch::arange(parameter.numel()) + from).reshape_as(parameter).sin() / 4);
  }
}

/// A configuration of a trained TinyModel as the teacher, whose weights lie in `dir`.
DistillationConfig taught(const TempFolder& dir) {
  TinyModel teacher(true);
  fill(teacher, 100);
  save_tensors(dir / "teacher.safetensors", module_tensors(teacher));
  DistillationConfig config;
  config.teacher.network =
      OwnPart<NetworkMaker>{"tiny", [](int64_t) { return std::make_shared<TinyModel>(true); }};
  config.teacher.pretrained = dir / "teacher.safetensors";
  config.weight = 1;
  return config;
}

TinyHooks with_equal_starts() {
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) { fill(model, 0); };
  return hooks;
}

// The labels have no part, so the loss falls as the network comes near to its teacher.
TEST(Distillation, ANetworkLearnsFromItsTeacherOnAnyNumberOfRanks) {
  const TempFolder dir;
  auto config = tiny_config();
  config.loss = taught(dir);
  config.scheduler.lr = 0.2;
  config.parallel.virtual_ranks = 2;
  config.train.loader.batch_size = 2;
  const auto one = run_tiny(1, config, with_equal_starts())[0];
  const auto two = run_tiny(2, config, with_equal_starts())[0];
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_TRUE(same_weights(one, two));
  EXPECT_LT(one.epoch_losses.back(), one.epoch_losses.front() * 0.9);
}

TEST(Distillation, ItsTeacherStaysAsItWasAndIsNoPartOfTheNetwork) {
  const TempFolder dir;
  auto config = tiny_config();
  config.loss = taught(dir);
  config.optimizer.weight_decay = 0.1;
  config.train.ckpt_save_dir = dir / "out";
  TrainingLog log({.file = {}, .console = false});
  auto hooks = with_equal_starts();
  at::Tensor first, last;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    struct Teaches final : Callback {
      Teaches(at::Tensor& before, at::Tensor& after) : before_(before), after_(after) {}
      /// The loss of a network that gives nothing depends on the teacher alone.
      static at::Tensor told(Trainer& asked) {
        Batch batch;
        batch.images = torch::ones({3, 3, 4, 4});
        batch.targets = {torch::tensor({1, 2, 3})};
        return asked.task().loss_of(batch, {torch::zeros({3, kTinyClasses})});
      }
      void on_begin(Trainer& asked) override { before_ = told(asked); }
      void on_end(Trainer& asked) override { after_ = told(asked); }
      at::Tensor& before_;
      at::Tensor& after_;
    };
    trainer.add(std::make_shared<Teaches>(first, last));
  };
  run_tiny(1, config, hooks);
  EXPECT_TRUE(first.equal(last));
  const TinyModel alone(true);
  EXPECT_EQ(load_tensors(dir / "out/latest/model.safetensors").tensors.size(),
            module_tensors(alone).size());
}

TEST(Distillation, ATeacherWithoutItsFileIsNamedAtTheStart) {
  const TempFolder dir;
  auto config = tiny_config();
  auto loss = taught(dir);
  loss.teacher.pretrained = dir / "none.safetensors";
  config.loss = loss;
  const auto error = error_of([&] { run_tiny(1, config); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(error.what()).find("none.safetensors are not there"), std::string::npos)
      << error.what();
}

/// The data of a rank's evaluations, in batches of 4.
struct EvaluatedData {
  std::shared_ptr<const TinyData> data = std::make_shared<const TinyData>(23);
  std::vector<DistributedSampler> samplers;
  Loader loader{image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                {.batch_size = 4}};
  explicit EvaluatedData(Trainer& trainer)
      : samplers{{data->size(), trainer.rank(), trainer.num_ranks(), {.shuffle = false}}} {}
};

/// Runs with results, checkpoints and evaluations.
class RecordedRun {
 public:
  explicit RecordedRun(int ranks) : data_(static_cast<size_t>(ranks)) {}

  TinyHooks hooks() {
    auto hooks = with_equal_starts();
    hooks.add_callbacks = [this](Trainer& trainer) {
      auto& data = data_[static_cast<size_t>(trainer.rank())];
      data = std::make_unique<EvaluatedData>(trainer);
      trainer.add(std::make_shared<Results>());
      trainer.add(std::make_shared<Checkpoints>(log_));
      trainer.add(std::make_shared<Evaluation>(data->loader, data->samplers));
    };
    return hooks;
  }

 private:
  std::vector<std::unique_ptr<EvaluatedData>> data_;  // each rank its own
  TrainingLog log_{{.file = {}, .console = false}};
};

Config recorded_config(const TempFolder& dir) {
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir.path();
  config.system.val_while_train = true;
  return config;
}

TEST(SeveralMetrics, AreInAllFilesAndTheFirstFigureRanks) {
  std::vector<std::vector<std::pair<std::string, double>>> figures;
  for (const int ranks : {1, 2}) {
    const TempFolder dir;
    auto config = recorded_config(dir);
    config.parallel.virtual_ranks = 2;
    config.train.loader.batch_size = 2;
    config.metric.names = {"AucMetric", "ClsMetric", "F1Metric"};
    config.metric.main_indicator = "auc";
    RecordedRun run(ranks);
    const auto state = run_tiny(ranks, config, run.hooks())[0].state;
    const std::vector<std::string> names = {"auc", "acc", "top_5", "f1", "precision", "recall"};
    auto& own = figures.emplace_back();
    double best = 0;
    for (const auto& record : read_metrics(dir / "metrics.jsonl")) {
      if (record.kind != "eval") continue;
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(record.values[i].first, names[i]);
        own.push_back(record.values[i]);
      }
      EXPECT_TRUE(record.value("loss"));
      EXPECT_EQ(record.value("samples"), 23);
      best = std::max(best, record.value("auc").value());
    }
    EXPECT_EQ(own.size(), 4 * names.size());
    ASSERT_TRUE(state.best);
    EXPECT_EQ(state.best->value, best);
    EXPECT_TRUE(
        read_file(dir / "result.log")
            .starts_with("Epoch\tloss\tauc\tacc\ttop_5\tf1\tprecision\trecall\ttrain_time"));
  }
  EXPECT_EQ(figures[0], figures[1]);
}

}  // namespace
}  // namespace lockstep
