// Metrics of which less is better: best checkpoints, schedules and ends follow them.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/model.h"
#include "lockstep/train.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// y = 2 x at 16 points.
class Slope final : public BatchMaker {
 public:
  int64_t size() const override { return 16; }
  Batch make(const BatchRows& rows) const override {
    const auto x = indices_of(rows).to(at::kFloat).unsqueeze(1) / 16;
    return {x, {x * 2}, rows.num_counted};
  }
};

struct SlopeNet final : Model {
  torch::nn::Linear last = register_module("last", torch::nn::Linear(1, 1));
  at::Tensor forward(at::Tensor input) override { return last(input); }
};

/// Gives each epoch its figure: an error, and beside it a gain that is 1 minus the error.
class GivenErrors final : public Metric {
 public:
  GivenErrors(std::vector<double> errors, std::shared_ptr<int64_t> epoch,
              std::vector<std::string> lower)
      : errors_(std::move(errors)), epoch_(std::move(epoch)), lower_(std::move(lower)) {}
  std::vector<std::string> metric_names() const override { return {"error", "gain"}; }
  std::vector<std::string> lower_is_better() const override { return lower_; }
  size_t num_sums() const override { return 1; }
  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    return {static_cast<double>(batch.valid)};
  }
  EvalResult result(std::span<const double> sums) override {
    const auto index = static_cast<size_t>(std::max<int64_t>(*epoch_, 1)) - 1;
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"error", errors_.at(index)}, {"gain", 1 - errors_.at(index)}};
    return result;
  }

 private:
  std::vector<double> errors_;
  std::shared_ptr<int64_t> epoch_;
  std::vector<std::string> lower_;
};

/// Epochs of 2 steps.
class LowerMetricTest : public ::testing::Test {
 protected:
  Recipe recipe(const std::vector<double>& errors,
                const std::vector<std::string>& lower = {"error"}) const {
    const auto epoch = std::make_shared<int64_t>(0);
    Recipe recipe;
    recipe.name = "slope";
    recipe.network = [](int64_t) { return std::make_shared<SlopeNet>(); };
    recipe.data = [](const DatasetUse&) { return std::make_unique<const Slope>(); };
    recipe.loss = [](const Tensors& outputs, const Tensors& targets) {
      return (outputs[0] - targets[0]).square().mean();
    };
    recipe.metric = [=](int64_t) { return std::make_unique<GivenErrors>(errors, epoch, lower); };
    recipe.main_indicator = "error";
    recipe.events.on_epoch_begin = [=](int64_t number) { *epoch = number; };
    recipe.settings = {"train.ckpt_save_dir=" + out().string(),
                       "scheduler.num_epochs=" + std::to_string(errors.size()),
                       "scheduler.lr=0.05",
                       "scheduler.warmup_epochs=0",
                       "train.loader.batch_size=8",
                       "system.val_while_train=True",
                       "system.ckpt_save_policy=top_k",
                       "system.ckpt_max_keep=2"};
    return recipe;
  }
  static void set(Recipe& recipe, const std::string& setting) {
    recipe.settings.push_back(setting);
  }
  void run(const Recipe& recipe) const { ASSERT_EQ(train(recipe, World::join()), 0); }

  fs::path out() const { return folder_ / "out"; }
  std::string log() const { return read_file(out() / "log_0.txt"); }
  TrainingState state() const {
    const auto file = out() / "latest/state.json";
    return decode_training_state(read_file(file), file.string()).state;
  }
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : list_checkpoints(out())) names.push_back(entry.name);
    return names;
  }

  const TempFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(LowerMetricTest, TheBestCheckpointHasTheLeastError) {
  std::vector<int64_t> best;
  auto given = recipe({0.4, 0.125, 0.3, 0.25, 0.5});
  given.events.on_saved = [&](const CheckpointFacts& saved) {
    if (saved.best) best.push_back(saved.epoch);
  };
  run(given);
  EXPECT_EQ(best, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000004");
  EXPECT_EQ(checkpoints(), (Names{"step_000004", "step_000008", "step_000010"}))
      << "the two best, and the newest";
  EXPECT_NE(log().find("=> Best error: 0.125 \nTraining completed!"), std::string::npos) << log();
  const auto table = log().find("Top K checkpoints:\nerror\tcheckpoint\n0.1250\t");
  ASSERT_NE(table, std::string::npos) << log();
  EXPECT_NE(log().find("\n0.2500\t", table), std::string::npos) << log();
  EXPECT_FALSE(state().higher_is_better);
}

TEST_F(LowerMetricTest, AnotherFigureOfTheMetricKeepsItsOwnDirection) {
  auto given = recipe({0.4, 0.125, 0.3, 0.25, 0.5});
  given.main_indicator = "gain";
  run(given);
  EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000004");
  EXPECT_NE(log().find("=> Best gain: 0.875 "), std::string::npos) << log();
  EXPECT_TRUE(state().higher_is_better);
}

TEST_F(LowerMetricTest, FilesOfWeightsAreThoseOfTheLeastErrors) {
  auto given = recipe({0.4, 0.125, 0.3, 0.25, 0.5});
  set(given, "train.weights_format=safetensors");
  set(given, "system.val_start_epoch=2");  // the first has no figure
  run(given);
  Names files;
  for (const auto& entry : fs::directory_iterator(out())) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().filename());
  }
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (Names{"best.safetensors", "e2.safetensors", "e4.safetensors"}));
  EXPECT_TRUE(fs::equivalent(out() / "best.safetensors", out() / "e2.safetensors"));
}

TEST_F(LowerMetricTest, AResumedRunGoesOnWithTheLeast) {
  auto given = recipe({0.4, 0.125, 0.3, 0.25, 0.0625});
  set(given, "train.max_steps=6");
  run(given);
  EXPECT_EQ(state().best->value, 0.125);
  set(given, "train.max_steps=8");
  set(given, "model.resume=True");
  run(given);
  EXPECT_EQ(state().best->value, 0.125);
  EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000004");
  set(given, "train.max_steps=0");
  run(given);
  EXPECT_EQ(state().best->value, 0.0625);
  EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000010");
  EXPECT_EQ(log().find("is better now"), std::string::npos) << log();
}

TEST_F(LowerMetricTest, ARunThatRankedByTheMostIsRankedAnew) {
  const std::vector<double> errors = {0.125, 0.4, 0.3, 0.25};
  auto given = recipe(errors, {});
  set(given, "system.ckpt_max_keep=4");
  set(given, "train.weights_format=safetensors");
  set(given, "train.max_steps=6");
  run(given);
  EXPECT_EQ(state().best->value, 0.4);
  ASSERT_TRUE(fs::equivalent(out() / "best.safetensors", out() / "e2.safetensors"));
  auto corrected = recipe(errors);
  corrected.settings = given.settings;
  set(corrected, "train.max_steps=0");
  set(corrected, "model.resume=True");
  run(corrected);
  EXPECT_NE(log().find("error: less is better now, and more was in the run that goes on: the best "
                       "so far is 0.125, of epoch 1\n"),
            std::string::npos)
      << log();
  EXPECT_EQ(state().best->epoch, 1);
  EXPECT_TRUE(fs::equivalent(out() / "best.safetensors", out() / "e1.safetensors"));
}

// Of 3 epochs the two greatest errors were kept: 2 and 3.
TEST_F(LowerMetricTest, WhereBetterOnesAreGoneTheBestIsThatOfTheKeptFiles) {
  const std::vector<double> errors = {0.125, 0.4, 0.3, 0.35, 0.25};
  auto given = recipe(errors, {});
  set(given, "train.weights_format=safetensors");
  set(given, "train.max_steps=6");
  run(given);
  ASSERT_FALSE(fs::exists(out() / "e1.safetensors"));
  auto corrected = recipe(errors);
  corrected.settings = given.settings;
  set(corrected, "train.max_steps=8");
  set(corrected, "model.resume=True");
  run(corrected);
  EXPECT_NE(log().find("more was in the run that goes on: the best so far is 0.3, of epoch 3; "
                       "better ones were not kept\n"),
            std::string::npos)
      << log();
  EXPECT_NE(log().find("=> Best error: 0.3 \n"), std::string::npos) << log();
  EXPECT_EQ(state().best, (MetricPoint{3, 6, 0.3}));
  EXPECT_TRUE(fs::equivalent(out() / "best.safetensors", out() / "e3.safetensors"));
  EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000006");
  set(corrected, "train.max_steps=0");
  run(corrected);
  EXPECT_EQ(state().best, (MetricPoint{5, 10, 0.25}));
  EXPECT_TRUE(fs::equivalent(out() / "best.safetensors", out() / "e5.safetensors"));
  EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000010");
}

// The run that goes on had no files of weights, and kept the folders of epochs 2 and 3.
TEST_F(LowerMetricTest, WhereBetterOnesAreGoneTheBestIsThatOfTheKeptFolders) {
  for (const bool has_average : {false, true}) {
    const std::vector<double> errors = {0.125, 0.4, 0.3, 0.35};
    auto given = recipe(errors, {});
    if (has_average) set(given, "train.ema=True");
    set(given, "train.max_steps=6");
    run(given);
    auto corrected = recipe(errors);
    corrected.settings = given.settings;
    set(corrected, "train.weights_format=safetensors");
    set(corrected, "train.max_steps=0");
    set(corrected, "model.resume=True");
    run(corrected);
    EXPECT_NE(log().find("the best so far is 0.3, of epoch 3; better ones were not kept\n"),
              std::string::npos)
        << log();
    EXPECT_EQ(state().best, (MetricPoint{3, 6, 0.3}));
    EXPECT_EQ(fs::read_symlink(out() / "best"), "step_000006");
    const auto best = read_weights(out() / "best.safetensors");
    const auto folder = read_weights(weights_in(out() / "step_000006", /*averaged=*/true));
    EXPECT_EQ(best.size(), 2U) << "weight and bias";
    EXPECT_TRUE(best.at("last.weight").equal(folder.at("last.weight"))) << has_average;
    fs::remove_all(out());
  }
}

TEST_F(LowerMetricTest, WhereNoneIsKeptTheNextIsTheBest) {
  const std::vector<double> errors = {0.125, 0.4, 0.3, 0.35};
  auto given = recipe(errors, {});
  set(given, "train.max_steps=6");
  run(given);
  auto corrected = recipe(errors);
  corrected.settings = given.settings;
  const fs::path elsewhere = folder_ / "elsewhere";
  set(corrected, "train.ckpt_save_dir=" + elsewhere.string());
  set(corrected, "train.max_steps=0");
  set(corrected, "model.resume=" + out().string());
  run(corrected);
  const auto lines = read_file(elsewhere / "log_0.txt");
  EXPECT_NE(lines.find("more was in the run that goes on: no evaluated weights were kept, so the "
                       "next ones are the best so far\n"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("=> Best error: 0.35 \n"), std::string::npos) << lines;
  EXPECT_EQ(fs::read_symlink(elsewhere / "best"), "step_000008");
}

TEST_F(LowerMetricTest, AnotherFigureOfTheMetricIsAWarning) {
  for (const std::string policy : {"top_k", "null"}) {
    auto given = recipe({0.4, 0.125, 0.3, 0.25});
    set(given, "system.ckpt_save_policy=" + policy);
    set(given, "train.max_steps=4");
    run(given);
    EXPECT_EQ(log().find("ranked by"), std::string::npos) << log();
    given.main_indicator = "gain";
    set(given, "train.max_steps=0");
    set(given, "model.resume=True");
    run(given);
    const std::string lost = ", and their checkpoints are not kept as the best ones; copy those";
    EXPECT_NE(log().find("ranked by gain now, and by error in the run that goes on: earlier epochs "
                         "have no rank" +
                         (policy == "null" ? "\n" : lost)),
              std::string::npos)
        << log();
    fs::remove_all(out());
  }
}

TEST_F(LowerMetricTest, EarlyStoppingWaitsForLess) {
  auto given = recipe({0.4, 0.3, 0.2, 0.3, 0.4, 0.1, 0.1});
  set(given, "train.early_stopping.patience=2");
  run(given);
  EXPECT_EQ(state().epoch, 5);
  EXPECT_NE(log().find("Early stopping: error has not improved in 2 evaluations, best: 0.2"),
            std::string::npos)
      << log();
  EXPECT_FALSE(state().early_stopping->higher_is_better);
}

// It ended because errors fell. With the direction right, these were no reason.
TEST_F(LowerMetricTest, AnEndByTheOtherDirectionCountsNoLonger) {
  const std::vector<double> errors = {0.4, 0.3, 0.2, 0.15, 0.1};
  auto given = recipe(errors, {});
  set(given, "train.early_stopping.patience=2");
  run(given);
  EXPECT_EQ(state().epoch, 3);
  auto corrected = recipe(errors);
  corrected.settings = given.settings;
  set(corrected, "model.resume=True");
  run(corrected);
  EXPECT_EQ(state().epoch, 5);
}

TEST_F(LowerMetricTest, TheRateFallsOnceTheErrorNoLongerDoes) {
  auto given = recipe({0.4, 0.3, 0.2, 0.3, 0.4, 0.1});
  for (const char* setting : {"scheduler.scheduler=reduce_on_plateau", "scheduler.patience=2",
                              "scheduler.decay_rate=0.5", "scheduler.min_lr=0"}) {
    set(given, setting);
  }
  run(given);
  std::vector<double> rates;
  for (const auto& record : read_metrics(out() / "metrics.jsonl")) {
    if (record.kind == "train" && record.step % 2 == 0) rates.push_back(record.value("lr").value());
  }
  EXPECT_EQ(rates, (std::vector<double>{0.05, 0.05, 0.05, 0.05, 0.05, 0.025}));
}

TEST_F(LowerMetricTest, AFigureThatThereIsNotIsNamedWithTheNearest) {
  const auto error = error_of([&] { train(recipe({0.4}, {"eror"}), World::join()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(),
               "metric: lower_is_better() of 'slope' has 'eror', and metric_names() has error, "
               "gain, did you mean 'error'?");
}

}  // namespace
}  // namespace lockstep
