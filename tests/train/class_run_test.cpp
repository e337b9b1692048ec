// Runs with several metrics.

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

TinyHooks with_equal_starts() {
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) { fill(model, 0); };
  return hooks;
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
