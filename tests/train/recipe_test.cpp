// Training from C++ with a recipe.

#include "lockstep/train.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "lockstep/base/file.h"
#include "lockstep/model.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// y = 3 x - 1 at 32 points.
class Line final : public BatchMaker {
 public:
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    const auto x = indices_of(rows).to(at::kFloat).unsqueeze(1) / 32;
    return {x, {x * 3 - 1}, rows.num_counted};
  }
};

struct Net final : Model {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(1, 4));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(4, 1));
  at::Tensor forward(at::Tensor input) override { return last(first(input)); }
};

class MeanError final : public Metric {
 public:
  std::vector<std::string> metric_names() const override { return {"closeness"}; }
  size_t num_sums() const override { return 2; }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    const auto error = (outputs[0] - batch.targets[0]).abs().narrow(0, 0, batch.valid);
    return {static_cast<double>(batch.valid), error.sum().item<double>()};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"closeness", 1 - sums[1] / sums[0]}};
    return result;
  }
};

class RecipeTest : public ::testing::Test {
 protected:
  Recipe recipe() const {
    Recipe recipe;
    recipe.name = "line";
    recipe.network = [](int64_t) { return std::make_shared<Net>(); };
    recipe.data = [](const DatasetUse&) { return std::make_unique<const Line>(); };
    recipe.loss = [](const Tensors& outputs, const Tensors& targets) {
      return (outputs[0] - targets[0]).square().mean();
    };
    recipe.settings = {"train.ckpt_save_dir=" + out().string(), "scheduler.num_epochs=3",
                       "scheduler.lr=0.05", "scheduler.warmup_epochs=0",
                       "train.loader.batch_size=8"};
    return recipe;
  }
  fs::path out() const { return folder_ / "out"; }
  TensorMap weights() const { return load_tensors(out() / "latest/model.safetensors").tensors; }

  const TempFolder folder_;
};

TEST_F(RecipeTest, EventsComeInTheirOrder) {
  std::string told;
  std::vector<double> losses;
  StepFacts next;
  auto given = recipe();
  given.metric = [](int64_t) { return std::make_unique<MeanError>(); };
  given.main_indicator = "closeness";
  given.settings.insert(given.settings.end(),
                        {"system.val_while_train=True", "scheduler.num_epochs=2",
                         "train.gradient_accumulation_steps=2"});
  given.events = {
      .on_begin =
          [&](const RunFacts& run) { told += "of " + std::to_string(run.total_steps) + "\n"; },
      .on_epoch_begin = [&](int64_t epoch) { told += "begin " + std::to_string(epoch) + ": "; },
      .before_step =
          [&](Model&, const StepFacts& step) {
            told += "b";
            next = step;
          },
      .before_update = [&](Model&) { told += "u"; },
      .on_step =
          [&](const StepFacts& step) {
            told += std::to_string(step.step_in_epoch);
            losses.push_back(step.loss);
            EXPECT_EQ(step.epoch, next.epoch);
            EXPECT_EQ(step.step_in_epoch, next.step_in_epoch);
            EXPECT_EQ(step.lr, next.lr);
            EXPECT_EQ(step.optimizer_steps, next.optimizer_steps + 1 - step.step_in_epoch % 2);
          },
      .on_epoch = [&](int64_t, double) { told += " "; },
      .before_evaluation = [&](Model&) { told += "e "; },
      .on_evaluation = [&](const EvalResult& result) { told += result.metrics[0].first + "\n"; },
      .on_end = [&] { told += "end"; }};
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(told, "of 4\nbegin 1: b1bu2b3bu4 e closeness\nbegin 2: b1bu2b3bu4 e closeness\nend");
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_TRUE(fs::exists(out() / "best"));
}

TEST_F(RecipeTest, TellsOfEachCheckpointOnceItIsWritten) {
  std::vector<CheckpointFacts> told;
  bool ended = false;
  auto given = recipe();
  given.events.on_saved = [&](const CheckpointFacts& saved) {
    EXPECT_FALSE(ended);
    EXPECT_TRUE(fs::exists(fs::path(saved.folder) / "model.safetensors")) << saved.folder;
    told.push_back(saved);
  };
  given.events.on_end = [&] { ended = true; };
  EXPECT_EQ(train(given, World::join()), 0);
  ASSERT_EQ(told.size(), 3U);
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].epoch, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(told[i].optimizer_steps, 4 * told[i].epoch);
  }
  EXPECT_TRUE(told[0].best);
}

TEST_F(RecipeTest, TheBeginTellsHowFarTheRunIs) {
  RunFacts begun;
  auto given = recipe();
  given.events.on_begin = [&](const RunFacts& run) { begun = run; };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(begun.optimizer_steps, 0);
  EXPECT_EQ(begun.num_ranks, 1);
  EXPECT_EQ(begun.folder, out().string());
  given.settings.insert(given.settings.end(), {"model.resume=True", "scheduler.num_epochs=4"});
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(begun.optimizer_steps, 12);
  EXPECT_EQ(begun.total_steps, 16);
}

TEST_F(RecipeTest, AnEvaluationBeginsWithTheWeightsThatItTakes) {
  at::Tensor evaluated;
  auto given = recipe();
  given.metric = [](int64_t) { return std::make_unique<MeanError>(); };
  given.main_indicator = "closeness";
  given.settings.insert(given.settings.end(), {"system.val_while_train=True", "train.ema=True",
                                               "scheduler.num_epochs=1", "train.ema_decay=0.5"});
  given.events.before_evaluation = [&](Model& network) {
    evaluated = dynamic_cast<Net&>(network).last->weight.detach().clone();
  };
  EXPECT_EQ(train(given, World::join()), 0);
  ASSERT_TRUE(evaluated.defined());
  const auto average = load_tensors(out() / "latest/ema.safetensors").tensors;
  EXPECT_TRUE(evaluated.equal(average.at("last.weight")));
  EXPECT_FALSE(evaluated.equal(weights().at("last.weight")));
}

// max_steps ends this run within an epoch, so its evaluation comes at the end.
TEST_F(RecipeTest, TheEndIsTheLastEvent) {
  std::string told;
  auto given = recipe();
  given.metric = [](int64_t) { return std::make_unique<MeanError>(); };
  given.main_indicator = "closeness";
  given.settings.insert(given.settings.end(), {"system.val_while_train=True", "train.max_steps=2"});
  given.events.on_evaluation = [&](const EvalResult&) { told += "evaluation "; };
  given.events.on_end = [&] { told += "end"; };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(told, "evaluation end");
}

TEST_F(RecipeTest, TheLogAnnouncesTheEndAfterTheLastEvent) {
  const auto log = [this] { return read_file(out() / "log_0.txt"); };
  auto given = recipe();
  given.events.on_end = [&] {
    EXPECT_TRUE(fs::exists(out() / "latest/model.safetensors"));
    throw Error(ErrorCode::kIo, "no room for a report");
  };
  EXPECT_STREQ(error_of([&] { train(given, World::join()); }).what(), "no room for a report");
  EXPECT_EQ(log().find("Training completed!"), std::string::npos) << log();
  EXPECT_EQ(train(recipe(), World::join()), 0);
  EXPECT_NE(log().find("Training completed!"), std::string::npos) << log();
}

TEST_F(RecipeTest, FrozenLayersStayAndGroupsHaveTheirRates) {
  auto given = recipe();
  at::Tensor before;
  given.network = [&](int64_t) {
    auto net = std::make_shared<Net>();
    net->first->weight.requires_grad_(false);
    before = net->first->weight.detach().clone();
    return net;
  };
  std::vector<double> rates;
  std::shared_ptr<Net> net;
  torch::optim::Optimizer* made = nullptr;
  given.optimizer = [&](torch::nn::Module& network) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    std::vector<at::Tensor> first, last;
    for (const auto& parameter : network.named_parameters()) {
      if (!parameter.value().requires_grad()) continue;
      (parameter.key().starts_with("last") ? last : first).push_back(parameter.value());
    }
    groups.emplace_back(first, std::make_unique<torch::optim::AdamOptions>(0.005));
    groups.emplace_back(last, std::make_unique<torch::optim::AdamOptions>(0.05));
    auto optimizer = std::make_unique<torch::optim::Adam>(groups, torch::optim::AdamOptions(0.05));
    made = optimizer.get();
    return optimizer;
  };
  given.events.on_step = [&](const StepFacts&) {
    for (auto& group : made->param_groups()) rates.push_back(group.options().get_lr());
  };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_TRUE(weights().at("first.weight").equal(before));
  ASSERT_EQ(rates.size(), 24U);
  EXPECT_DOUBLE_EQ(rates[0] * 10, rates[1]);
  EXPECT_GT(rates[1], 0);
}

const OptimizerPart kPlainSgd("plain_sgd", "SGD", [](Section& settings) {
  bool loses = false;
  settings.read("loses", loses, "makes no groups");
  return [=](const std::vector<ParameterGroup>& groups) {
    std::vector<torch::optim::OptimizerParamGroup> own;
    for (const auto& group : groups) {
      auto options = std::make_unique<torch::optim::SGDOptions>(0.001);  // group.lr counts
      options->weight_decay(group.weight_decay);
      own.emplace_back(group.parameters, std::move(options));
    }
    if (loses) own.pop_back();
    return std::make_unique<torch::optim::SGD>(own, torch::optim::SGDOptions(0));
  };
});
const SchedulePart kFalling("falling", "lr by the epochs done", [](Section&) {
  return [](const SchedulePoint& point) { return point.lr / (1 + std::floor(point.epoch)); };
});
std::string counted_by_name;
const CallbackPart kCounts("counts", "counts", [](Section& settings) {
  std::string mark = "c";
  settings.read("mark", mark, "of an epoch");
  return [=] {
    RecipeEvents events;
    events.on_epoch = [=](int64_t epoch, double) {
      counted_by_name += mark + std::to_string(epoch);
    };
    return events;
  };
});

std::string told_of_breaks;
const CallbackPart kBreaks("breaks", "fails, and in on_error again", [](Section&) {
  return [] {
    RecipeEvents events;
    events.on_epoch = [](int64_t, double) { throw Error(ErrorCode::kIo, "the first"); };
    events.on_error = [](const std::string& why) {
      told_of_breaks += why + " ";
      throw std::runtime_error("a second");
    };
    return events;
  };
});

TEST_F(RecipeTest, TheFirstErrorIsReportedThoughOnErrorFailsToo) {
  auto given = recipe();
  given.settings.emplace_back("callbacks=[{name: breaks}, {name: breaks}]");
  given.events.on_error = [](const std::string& why) {
    told_of_breaks += why;
    throw 3;
  };
  told_of_breaks.clear();
  ::testing::internal::CaptureStderr();
  const auto error = error_of([&] { train(given, World::join()); });
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_STREQ(error.what(), "the first");
  EXPECT_EQ(told_of_breaks, "the first the first the first");
  EXPECT_NE(lines.find("on_error failed too: a second\n"), std::string::npos) << lines;
}

TEST_F(RecipeTest, TakesOptimizerScheduleAndCallbacksByName) {
  auto given = recipe();
  std::vector<double> rates;
  given.events.on_step = [&](const StepFacts& step) { rates.push_back(step.lr); };
  given.settings.insert(given.settings.end(),
                        {"optimizer.opt=plain_sgd", "scheduler.scheduler=falling",
                         "optimizer.groups=[{params: first, frozen: True}]",
                         "callbacks=[{name: counts}, {name: counts, mark: d}]"});
  counted_by_name.clear();
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(counted_by_name, "c1d1c2d2c3d3");
  ASSERT_EQ(rates.size(), 12U);
  EXPECT_EQ(rates[3], 0.05);
  EXPECT_EQ(rates[4], 0.05 / 2);
  EXPECT_EQ(rates[11], 0.05 / 3);
  given.settings.emplace_back("optimizer.loses=True");
  EXPECT_STREQ(error_of([&] { train(given, World::join()); }).what(),
               "optimizer.opt: 'plain_sgd' made 0 groups of the 1 given");
}

TEST_F(RecipeTest, AnOwnOptimizerTakesNoRatesOfGroups) {
  auto given = recipe();
  given.optimizer = [](torch::nn::Module& network) {
    return std::make_unique<torch::optim::Adam>(network.parameters(),
                                                torch::optim::AdamOptions(0.005));
  };
  given.settings.emplace_back("optimizer.groups=[{params: last, lr_scale: 2}]");
  EXPECT_NE(std::string(error_of([&] { train(given, World::join()); }).what())
                .find("no effect on the recipe's own optimizer"),
            std::string::npos);
}

// One program may train several, one after the other.
TEST_F(RecipeTest, ASecondRunOfTheSameNameHasItsOwnParts) {
  EXPECT_EQ(train(recipe(), World::join()), 0);
  const auto first = weights();
  EXPECT_EQ(train(recipe(), World::join()), 0);
  EXPECT_TRUE(weights().at("last.weight").equal(first.at("last.weight")));
  auto other = recipe();
  other.data = [](const DatasetUse&) -> std::unique_ptr<const BatchMaker> {
    throw Error(ErrorCode::kNotFound, "no such data");
  };
  std::string why;
  other.events.on_error = [&](const std::string& text) { why = text; };
  EXPECT_THROW(train(other, World::join()), Error);
  EXPECT_NE(why.find("no such data"), std::string::npos) << why;
}

TEST_F(RecipeTest, MistakesAreOneLine) {
  const auto refusal = [](const Recipe& given) {
    const Error error = error_of([&] { train(given, World::join()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  auto given = recipe();
  given.network = {};
  EXPECT_EQ(refusal(given), "train(recipe): the recipe has no network");
  given = recipe();
  given.name = "my net";
  EXPECT_NE(refusal(given).find("the name 'my net' must be"), std::string::npos);
  given = recipe();
  given.settings.push_back("train.loader.batchsize=3");
  EXPECT_EQ(refusal(given),
            "-o train.loader.batchsize=3: unknown key 'train.loader.batchsize', did you mean "
            "'batch_size'?");
  given = recipe();
  given.network = [](int64_t) { return nullptr; };
  EXPECT_EQ(refusal(given), "model.network: 'line' made no network");
  EXPECT_FALSE(fs::exists(out()));
}

/// Forgets a row, or a column.
class Careless final : public BatchMaker {
 public:
  explicit Careless(bool of_rows) : of_rows_(of_rows) {}
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    const auto x = indices_of(rows).to(at::kFloat).unsqueeze(1);
    if (!of_rows_) return {{}, {x}, rows.num_counted};
    return {x, {x.narrow(0, 0, x.size(0) - 1)}, rows.num_counted};
  }

 private:
  bool of_rows_;
};

TEST_F(RecipeTest, MistakesInPartsAreTold) {
  const auto refusal = [](const Recipe& given) {
    const Error error = error_of([&] { train(given, World::join()); });
    return std::string(error.what());
  };
  auto given = recipe();
  given.data = [](const DatasetUse&) { return std::make_unique<const Careless>(true); };
  EXPECT_NE(refusal(given).find("'line' made Batch::targets of 7 rows for 8 samples"),
            std::string::npos)
      << refusal(given);
  given.data = [](const DatasetUse&) { return std::make_unique<const Careless>(false); };
  EXPECT_NE(refusal(given).find("'line' left Batch::images undefined"), std::string::npos);
  given.data = [](const DatasetUse&) { return nullptr; };
  EXPECT_NE(refusal(given).find("train.dataset: 'line' made no data set"), std::string::npos);
  given = recipe();
  given.loss = [](const Tensors& outputs, const Tensors& targets) {
    return outputs[0] - targets[0];
  };
  EXPECT_EQ(refusal(given), "loss: 'line' gave 8 numbers, not one number");
  given = recipe();
  given.metric = [](int64_t) { return nullptr; };
  EXPECT_EQ(refusal(given), "metric: 'line' made no metric");
  given = recipe();
  given.optimizer = [](torch::nn::Module&) { return nullptr; };
  EXPECT_EQ(refusal(given), "the recipe's optimizer: no optimizer was made");
}

}  // namespace
}  // namespace lockstep
