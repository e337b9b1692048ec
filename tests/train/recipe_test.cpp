// Training from C++ with a recipe.

#include "lockstep/train.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

#include "lockstep/base/file.h"
#include "lockstep/model.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/task/classification.h"
#include "lockstep/train/task/logged_values.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

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
  explicit MeanError(std::string column = "") : column_(std::move(column)) {}
  std::vector<std::string> metric_names() const override { return {"closeness"}; }
  size_t num_sums() const override { return 2; }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    const auto error = (of(outputs) - of(batch.targets)).abs().narrow(0, 0, batch.valid);
    return {static_cast<double>(batch.valid), error.sum().item<double>()};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"closeness", 1 - sums[1] / sums[0]}};
    return result;
  }

 private:
  at::Tensor of(const Tensors& all) const { return column_.empty() ? all[0] : all[column_]; }

  std::string column_;  ///< Empty: the first.
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

/// A wrapper, whose class no checkpoint has.
class Wrapper final : public torch::optim::Optimizer {
 public:
  explicit Wrapper(const std::vector<at::Tensor>& parameters)
      : Optimizer({torch::optim::OptimizerParamGroup(parameters)},
                  std::make_unique<torch::optim::SGDOptions>(0.1)) {}
  at::Tensor step(LossClosure = nullptr) override { return {}; }
};

TEST_F(RecipeTest, AnOptimizerThatCannotBeSavedIsRefusedAtTheStart) {
  auto given = recipe();
  bool began = false;
  given.events.on_step = [&](const StepFacts&) { began = true; };
  given.optimizer = [](const torch::nn::Module& module) {
    return std::make_unique<Wrapper>(module.parameters());
  };
  const std::string why = error_of([&] { train(given, World::join()); }).what();
  EXPECT_EQ(why.find("the recipe's optimizer: the state of this optimizer cannot be saved: "), 0U)
      << why;
  EXPECT_FALSE(began);
}

/// The mean square of outputs less targets.
at::Tensor square_error(const Tensors& outputs, const Tensors& targets) {
  return (outputs[0] - targets[0]).square().mean();
}

/// Counts the batches of each size.
class CountedLine final : public BatchMaker {
 public:
  explicit CountedLine(std::map<int64_t, int>& batches) : batches_(batches) {}
  int64_t size() const override { return line_.size(); }
  Batch make(const BatchRows& rows) const override {
    const std::lock_guard lock(mutex_);
    ++batches_[std::ssize(rows.samples)];
    return line_.make(rows);
  }

 private:
  Line line_;
  mutable std::mutex mutex_;
  std::map<int64_t, int>& batches_;
};

// 32 samples, dealt to 3: 11 each, in batches of 8 and 3.
TEST_F(RecipeTest, ItsDataMakeABatchForEachVirtualRank) {
  std::map<int64_t, int> batches;
  auto given = recipe();
  given.data = [&](const DatasetUse&) { return std::make_unique<const CountedLine>(batches); };
  given.settings.insert(given.settings.end(),
                        {"scheduler.num_epochs=1", "parallel.virtual_ranks=3",
                         "train.loader.drop_remainder=False", "train.loader.shuffle=True"});
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(batches[8], 3);
  EXPECT_EQ(batches[3], 3);
  EXPECT_EQ(batches.count(24), 0U);
}

TEST_F(RecipeTest, ItsLossLogsValuesOfItsOwn) {
  auto given = recipe();
  given.log_names = {"twice", "endless"};
  given.settings.insert(given.settings.end(),
                        {"train.gradient_accumulation_steps=2", "parallel.virtual_ranks=2",
                         "train.loader.batch_size=4", "system.log_interval=1"});
  given.loss = [](const Tensors& outputs, const Tensors& targets) {
    const auto loss = square_error(outputs, targets);
    const auto twice = loss.detach() * 2;
    log_value("twice", twice);
    twice.zero_();  // the value has been copied
    log_value("endless", at::full({}, std::numeric_limits<double>::infinity()));
    return loss;
  };
  int64_t steps = 0;
  given.events.before_step = [](Model&, const StepFacts& step) {
    EXPECT_TRUE(step.logged.empty());
  };
  given.events.on_step = [&](const StepFacts& step) {
    ++steps;
    ASSERT_EQ(step.logged.size(), 2U);
    EXPECT_EQ(step.logged[0], (std::pair<std::string, double>("twice", 2 * step.loss)));
    EXPECT_TRUE(std::isinf(step.logged[1].second));
  };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(steps, 12);
  const auto records = read_metrics(out() / "metrics.jsonl");
  ASSERT_EQ(records.size(), 6U);
  for (const auto& record : records) {
    EXPECT_DOUBLE_EQ(record.value("twice").value(), 2 * record.value("loss").value());
    EXPECT_TRUE(std::isnan(record.value("endless").value()));
  }
  const auto log = read_file(out() / "log_0.txt");
  EXPECT_NE(log.find(" img/s, twice: "), std::string::npos) << log;
  EXPECT_NE(log.find(", endless: inf\n"), std::string::npos) << log;
  const auto picture = read_file(out() / "result.svg");
  EXPECT_NE(picture.find(">Logged values, up to "), std::string::npos);
  EXPECT_NE(picture.find(">twice</text>"), std::string::npos);
  EXPECT_EQ(picture.find(">endless</text>"), std::string::npos) << "it has no number";
}

// Whether a number is NaN, or is missing.
TEST_F(RecipeTest, ABatchWithoutANumberLeavesItsStepWithoutOne) {
  auto given = recipe();
  given.log_names = {"some", "bad"};
  given.settings.insert(given.settings.end(),
                        {"train.gradient_accumulation_steps=2", "train.loader.batch_size=4"});
  int64_t calls = 0;
  given.loss = [&](const Tensors& outputs, const Tensors& targets) {
    const bool first = ++calls == 1;  // of the first step's two batches
    if (!first) log_value("some", at::full({}, 5));
    log_value("bad", at::full({}, first ? std::nan("") : 5.0));
    return square_error(outputs, targets);
  };
  EXPECT_EQ(train(given, World::join()), 0);
  const auto records = read_metrics(out() / "metrics.jsonl");
  ASSERT_GE(records.size(), 2U);
  for (const char* name : {"some", "bad"}) {
    EXPECT_TRUE(std::isnan(records[0].value(name).value())) << name;
    EXPECT_EQ(records[1].value(name), 5) << name;
  }
}

const LossPart kTwoTerms("two_terms", "logs both of its terms", [](Section& settings) {
  double weight = 2;
  settings.read("weight", weight, {0, 9}, "of the far term");
  const auto loss = [=](const Tensors& outputs, const Tensors& targets) {
    const auto near = square_error(outputs, targets);
    const auto far = (outputs[0] - targets[0]).abs().mean();
    log_value("near", near);
    log_value("far", far);
    return near + weight * far;
  };
  return LoggedLoss(loss, {"near", "far"});
});

TEST_F(RecipeTest, ALossByNameLogsToo) {
  auto given = recipe();
  given.loss = {};
  given.settings.emplace_back("loss={name: two_terms, weight: 3}");
  int64_t steps = 0;
  given.events.on_step = [&](const StepFacts& step) {
    ++steps;
    ASSERT_EQ(step.logged.size(), 2U);
    EXPECT_EQ(step.logged[0].first, "near");
    EXPECT_EQ(step.logged[1].first, "far");
    EXPECT_NEAR(step.logged[0].second + 3 * step.logged[1].second, step.loss, 1e-5);
  };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(steps, 12);
  given.log_names = {"far"};
  EXPECT_STREQ(error_of([&] { train(given, World::join()); }).what(),
               "the name 'far' of a logged value is given twice");
}

TEST_F(RecipeTest, MistakesInLoggedValuesAreOneLine) {
  auto given = recipe();
  const auto refusal = [&] {
    const Error error = error_of([&] { train(given, World::join()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  for (const char* name : {"loss", "rank", "kind"}) {
    given.log_names = {name};
    EXPECT_EQ(refusal(), "the name '" + std::string(name) +
                             "' of a logged value is another field of metrics.jsonl");
  }
  given.log_names = {"of box"};
  EXPECT_EQ(refusal(),
            "the name 'of box' of a logged value must be of letters, digits, '_', '-' and '.'");
  EXPECT_FALSE(fs::exists(out()));
  given.log_names = {"box"};
  given.loss = [](const Tensors& outputs, const Tensors& targets) {
    log_value("boxx", outputs[0].mean());
    return square_error(outputs, targets);
  };
  EXPECT_EQ(refusal(),
            "log_value('boxx'): neither Recipe::log_names nor the loss has this name, did you mean "
            "'box'?");
  given.loss = [](const Tensors& outputs, const Tensors& targets) {
    log_value("box", outputs[0]);
    return square_error(outputs, targets);
  };
  EXPECT_EQ(refusal(), "log_value('box'): 8 numbers, not one");
}

TEST(LoggedValues, OfAnyTypeAreNumbersInTheirOrder) {
  const auto numbers =
      numbers_on_host(at::full({1}, 2.5), {at::Tensor(), at::full({}, 3, at::kLong), at::ones({})});
  ASSERT_EQ(numbers.size(), 4U);
  EXPECT_EQ(numbers[0], 2.5);
  EXPECT_TRUE(std::isnan(numbers[1]));
  EXPECT_EQ(numbers[2], 3);
  EXPECT_EQ(numbers[3], 1);
}

// It computes the loss, too.
TEST(LoggedValues, AreDroppedInAnEvaluation) {
  int64_t calls = 0;
  ClassificationTask task(
      [&](const Tensors& outputs, const Tensors&) {
        ++calls;
        log_value("anything", outputs[0].mean());
        return outputs[0].mean();
      },
      3);
  const auto sums =
      task.sums({at::zeros({2, 3})}, {at::zeros({2, 1}), {at::zeros({2}, at::kLong)}, 2});
  EXPECT_EQ(sums[0], 2);
  EXPECT_EQ(calls, 1);
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
  given.name = "det";
  EXPECT_EQ(refusal(given),
            "the recipe:1: model.type 'det' is the name of a built-in part, too: give your own "
            "another name");
  given = recipe();
  given.settings.push_back("train.loader.batchsize=3");
  EXPECT_EQ(refusal(given),
            "Recipe::settings of line: train.loader.batchsize=3: unknown key "
            "'train.loader.batchsize', did you mean 'batch_size'?");
  given = recipe();
  given.settings.push_back("train.dataset.data_dir=d");
  EXPECT_EQ(refusal(given),
            "Recipe::settings of line: train.dataset.data_dir=d: train.dataset.data_dir would have "
            "no effect: model.type line has data of its own");
  given = recipe();
  given.network = [](int64_t) { return nullptr; };
  EXPECT_EQ(refusal(given), "the recipe: 'line' made no network");
  EXPECT_FALSE(fs::exists(out()));
}

/// A grey picture of 8 x 8, as a BMP file.
void write_bmp(const fs::path& path, char grey) {
  std::string text = "BM";
  const auto add = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  };
  for (const uint32_t value : {54 + 192, 0, 54, 40, 8, 8}) add(value, 4);
  add(1, 2);   // plane
  add(24, 2);  // bits of a pixel
  for (const uint32_t value : {0, 192, 0, 0, 0, 0}) add(value, 4);
  write_file_atomically(path, text + std::string(192, grey));
}

/// (N, 3, 8, 8) -> (N, 2).
struct PictureNet final : Model {
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(192, 2));
  at::Tensor forward(at::Tensor input) override { return layer(input.flatten(1)); }
};

class PictureRecipe : public RecipeTest {
 protected:
  PictureRecipe() {
    for (const char* kind : {"dark", "light"}) {
      fs::create_directories(pictures() / kind);
      for (char i = 0; i < 4; ++i) {
        const char grey = static_cast<char>(kind[0] == 'd' ? i : 250 + i);
        write_bmp(pictures() / kind / (std::to_string(i) + ".bmp"), grey);
      }
    }
  }
  fs::path pictures() const { return folder_ / "pictures"; }
  /// Without data; `settings` name some.
  Recipe picture_recipe(const std::vector<std::string>& settings) const {
    Recipe given = recipe();
    given.name = "shades";
    given.network = [](int64_t) { return std::make_shared<PictureNet>(); };
    given.data = {};
    given.loss = {};
    given.num_classes = 2;
    given.settings.insert(given.settings.end(), settings.begin(), settings.end());
    return given;
  }
  std::vector<std::string> folder_settings() const {
    return {"train.dataset.type=ImageFolderDataset",
            "train.dataset.data_dir=" + pictures().string(),
            "train.dataset.transform_pipeline=[{Resize: {size: [8, 8]}}, {NormalizeImage: }]"};
  }
  static std::string refusal(const Recipe& given) {
    const Error error = error_of([&] { train(given, World::join()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
};

TEST_F(PictureRecipe, TakesABuiltInDataSet) {
  auto given = picture_recipe(folder_settings());
  for (const std::string& item : folder_settings()) {
    given.settings.push_back("eval" + item.substr(item.find('.')));
  }
  given.settings.insert(given.settings.end(),
                        {"system.val_while_train=True", "train.loader.batch_size=4"});
  given.loss = [](const Tensors& outputs, const Tensors& targets) {
    EXPECT_EQ(targets[0].scalar_type(), at::kLong);
    return at::cross_entropy_loss(outputs[0], targets[0]);
  };
  double accuracy = 0;
  given.events.on_evaluation = [&](const EvalResult& result) { accuracy = result.metric("acc"); };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(accuracy, 1);
  EXPECT_EQ(read_file(out() / "classes.txt"), "dark\nlight\n");
}

TEST_F(PictureRecipe, MistakesInDataOfSettingsAreOneLine) {
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal(picture_recipe({})),
      "the recipe:1: train.dataset.type is missing: one of Cifar10Dataset, ");
  has(refusal(picture_recipe({"train.dataset.type=ImageFoldrDataset"})),
      "Recipe::settings of shades: train.dataset.type=ImageFoldrDataset: train.dataset.type must "
      "be one of Cifar10Dataset, ");
  has(refusal(picture_recipe({"train.dataset.type=ImageFoldrDataset"})),
      "did you mean 'ImageFolderDataset'?");
  has(refusal(picture_recipe({"train.dataset.type=ImageFolderDataset"})),
      "train.dataset.data_dir is missing: a folder with a sub-folder for each class");
  auto given = picture_recipe(folder_settings());
  given.num_classes = 0;
  has(refusal(given), "the data have 2 classes, Recipe::num_classes is 0");
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

/// Points without targets.
class Unlabelled final : public BatchMaker {
 public:
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    return {indices_of(rows).to(at::kFloat).unsqueeze(1) / 32, {}, rows.num_counted};
  }
};

void expect_refused(const Recipe& given, const std::string& why) {
  const Error error = error_of([&] { train(given, World::join()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
}

TEST_F(RecipeTest, DataWithoutTargetsNeedPartsOfOnesOwn) {
  auto given = recipe();
  given.data = [](const DatasetUse&) { return std::make_unique<const Unlabelled>(); };
  given.loss = [](const Tensors& outputs, const Tensors&) { return outputs[0].square().mean(); };
  EXPECT_EQ(train(given, World::join()), 0);
  given.settings.emplace_back("system.val_while_train=True");
  expect_refused(given, "eval.dataset: 'line' gives no targets; ClsMetric needs one");
  given.metric = [](int64_t) { return std::make_unique<MeanError>(); };
  given.main_indicator = "closeness";
  expect_refused(given, "there is no tensor [0]: the list is empty");
  given = recipe();
  given.data = [](const DatasetUse&) { return std::make_unique<const Unlabelled>(); };
  given.loss = {};
  expect_refused(given, "train.dataset: 'line' gives no targets; CrossEntropySmooth needs one");
}

/// Points of classes 0 and 1, and of a third one at the end.
class ThreeClasses final : public BatchMaker {
 public:
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    const auto numbers = indices_of(rows);
    const auto x = numbers.to(at::kFloat).unsqueeze(1) / 32;
    const auto last = numbers.eq(31).to(at::kLong);
    return {x, {numbers % 2 + last}, rows.num_counted};
  }
};

struct TwoScores final : Model {
  torch::nn::Linear last = register_module("last", torch::nn::Linear(1, 2));
  at::Tensor forward(at::Tensor input) override { return last(input); }
};

TEST_F(RecipeTest, LabelsOfDataAreClassesOfTheNetwork) {
  auto given = recipe();
  given.network = [](int64_t) { return std::make_shared<TwoScores>(); };
  given.data = [](const DatasetUse&) { return std::make_unique<const ThreeClasses>(); };
  given.loss = {};
  given.num_classes = 2;
  expect_refused(given, "train.dataset: 'line' has the label 2, Recipe::num_classes is 2");
  given.num_classes = 0;  // the network alone has a number of them
  expect_refused(given,
                 "CrossEntropySmooth: the label 2 is out of range: the network has 2 classes");
}

/// Points of two classes; rows of padding have a label that no network has.
class PaddedClasses final : public BatchMaker {
 public:
  int64_t size() const override { return 33; }
  Batch make(const BatchRows& rows) const override {
    const auto numbers = indices_of(rows);
    const auto labels = numbers % 2;
    const int64_t padding = numbers.size(0) - rows.num_counted;
    labels.narrow(0, rows.num_counted, padding).fill_(7);
    padded = padded || padding > 0;
    return {numbers.to(at::kFloat).unsqueeze(1) / 33, {labels}, rows.num_counted};
  }
  inline static std::atomic<bool> padded = false;
};

TEST_F(RecipeTest, LabelsOfPaddingAreNotLookedAt) {
  auto given = recipe();
  given.network = [](int64_t) { return std::make_shared<TwoScores>(); };
  given.data = [](const DatasetUse&) { return std::make_unique<const PaddedClasses>(); };
  given.loss = {};
  given.num_classes = 2;
  given.settings.insert(given.settings.end(),
                        {"system.val_while_train=True", "parallel.virtual_ranks=2"});
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_TRUE(PaddedClasses::padded);
}

TEST_F(RecipeTest, ALossWithoutAGradientIsNamed) {
  auto given = recipe();
  given.loss = [](const Tensors& outputs, const Tensors& targets) {
    return (outputs[0] - targets[0]).square().mean().detach();
  };
  expect_refused(given, "loss: 'line' gave a number without a gradient");
}

/// Fails in its second epoch.
class Failing final : public BatchMaker {
 public:
  explicit Failing(bool by_number) : by_number_(by_number) {}
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    if (rows.epoch == 1 && by_number_) throw 7;
    if (rows.epoch == 1) throw std::runtime_error("no line\nframe #0");
    return Line().make(rows);
  }

 private:
  bool by_number_;
};

TEST_F(RecipeTest, AFailureOfDataHasTheirNameAndSamples) {
  const auto why = [&](bool by_number) {
    auto given = recipe();
    given.settings.emplace_back("train.loader.shuffle=False");
    given.data = [=](const DatasetUse&) { return std::make_unique<const Failing>(by_number); };
    return std::string(error_of([&] { train(given, World::join()); }).what());
  };
  const std::string place = "train.dataset: 'line' failed in epoch 2, samples 0, 1, 2 and 5 more: ";
  EXPECT_TRUE(why(false).ends_with(place + "no line")) << why(false);
  EXPECT_TRUE(why(true).ends_with(place + "its exception is no std::exception")) << why(true);
}

/// Gives other figures than it announces.
class Misnamed final : public Metric {
 public:
  explicit Misnamed(std::string figure) : figure_(std::move(figure)) {}
  std::vector<std::string> metric_names() const override { return {"closeness"}; }
  size_t num_sums() const override { return 1; }
  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    return {static_cast<double>(batch.valid)};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    if (!figure_.empty()) result.metrics = {{figure_, 1}};
    return result;
  }

 private:
  std::string figure_;
};

TEST_F(RecipeTest, FiguresOfOtherNamesAreFoundBeforeTheFirstStep) {
  auto given = recipe();
  given.settings.emplace_back("system.val_while_train=True");
  given.main_indicator = "closeness";
  int64_t steps = 0;
  given.events.on_step = [&](const StepFacts&) { ++steps; };
  given.metric = [](int64_t) { return std::make_unique<Misnamed>("nearness"); };
  expect_refused(given,
                 "before training: Metric::result() gives nearness, and metric_names() has "
                 "closeness");
  given.metric = [](int64_t) { return std::make_unique<Misnamed>(""); };
  expect_refused(given, "Metric::result() gives no figure, and metric_names() has closeness");
  EXPECT_EQ(steps, 0);
}

TEST_F(RecipeTest, FiguresOfOtherNamesEndAResumedRun) {
  auto given = recipe();
  EXPECT_EQ(train(given, World::join()), 0);
  given.settings.insert(given.settings.end(), {"model.resume=True", "scheduler.num_epochs=4",
                                               "system.val_while_train=True"});
  given.main_indicator = "closeness";
  given.metric = [](int64_t) { return std::make_unique<Misnamed>("nearness"); };
  expect_refused(given, "Metric::result() gives nearness, and metric_names() has closeness");
}

TEST_F(RecipeTest, CheckKnowsTheFiguresOfAMetric) {
  auto given = recipe();
  given.settings.emplace_back("system.val_while_train=True");
  given.main_indicator = "nearness";
  given.metric = [](int64_t) { return std::make_unique<MeanError>(); };
  tasks().put({given.name, "a line", [given](Section&) { return given; }});
  const Config config = read_config(parse_yaml("model: {type: line}", "a.yaml"));
  EXPECT_STREQ(error_of([&] { run_check(config, World::join()); }).what(),
               "metric.main_indicator is 'nearness', evaluation gives closeness");
}

/// The names of two inputs and two targets.
using ColumnNames = std::array<std::string, 4>;

/// Two functions of x, which is given with its square.
class Columns final : public BatchMaker {
 public:
  explicit Columns(ColumnNames names) : names_(std::move(names)) {}
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    const auto x = indices_of(rows).to(at::kFloat).unsqueeze(1) / 32;
    const bool changes = names_[3] == "changes";
    Batch batch{x, {}, rows.num_counted};
    batch.images_name = names_[0];
    batch.more_inputs = {{names_[1], x.square()}};
    batch.targets = {{names_[2], x * 3 - 1},
                     {changes ? std::to_string(rows.samples.front()) : names_[3], x.square() + x}};
    return batch;
  }

 private:
  ColumnNames names_;
};

/// Finds its inputs by name if they have names.
struct ColumnNet final : Model {
  torch::nn::Linear of_x = register_module("of_x", torch::nn::Linear(1, 4));
  torch::nn::Linear of_square = register_module("of_square", torch::nn::Linear(1, 4));
  torch::nn::Linear line = register_module("line", torch::nn::Linear(4, 1));
  torch::nn::Linear bow = register_module("bow", torch::nn::Linear(4, 1));
  Tensors compute(const Tensors& inputs) override {
    if (!inputs.has("x")) {
      const auto inner = of_x(inputs[0]) + of_square(inputs[1]);
      return {line(inner), bow(inner)};
    }
    const auto inner = of_x(inputs["x"]) + of_square(inputs["square"]);
    return {{"line", line(inner)}, {"bow", bow(inner)}};
  }
};

class NamesTest : public RecipeTest {
 protected:
  Recipe named_recipe(const ColumnNames& names = {"x", "square", "line", "bow"}) const {
    auto given = recipe();
    given.network = [](int64_t) { return std::make_shared<ColumnNet>(); };
    given.data = [names](const DatasetUse&) { return std::make_unique<const Columns>(names); };
    given.loss = [](const Tensors& outputs, const Tensors& targets) {
      const bool named = outputs.has("bow") && targets.has("bow");
      const auto line = named ? outputs["line"] - targets["line"] : outputs[0] - targets[0];
      const auto bow = named ? outputs["bow"] - targets["bow"] : outputs[1] - targets[1];
      return line.square().mean() + 2 * bow.square().mean();
    };
    given.settings.insert(given.settings.end(),
                          {"parallel.virtual_ranks=2", "train.gradient_accumulation_steps=2"});
    return given;
  }
  std::string refusal(const Recipe& given) const {
    return error_of([&] { train(given, World::join()); }).what();
  }
};

// Names reach network, loss and metric, and numbers do not depend on them.
TEST_F(NamesTest, ArriveInTrainingAndEvaluation) {
  for (const std::string level : {"O0", "O1"}) {
    std::vector<double> closeness;
    std::vector<TensorMap> ends;
    for (const bool named : {false, true}) {
      auto given = named ? named_recipe() : named_recipe({});
      int64_t with_names = 0, without = 0;
      given.loss = [&, loss = given.loss](const Tensors& outputs, const Tensors& targets) {
        ++(outputs.has("line") && targets.has("line") ? with_names : without);
        return loss(outputs, targets);
      };
      given.metric = [named](int64_t) { return std::make_unique<MeanError>(named ? "line" : ""); };
      given.main_indicator = "closeness";
      given.settings.insert(given.settings.end(),
                            {"system.val_while_train=True", "system.amp_level=" + level});
      given.events.on_evaluation = [&](const EvalResult& result) {
        closeness.push_back(result.metric("closeness"));
      };
      EXPECT_EQ(train(given, World::join()), 0);
      EXPECT_EQ(named ? without : with_names, 0);
      EXPECT_EQ(with_names + without, 12);  // virtual ranks, micro-steps, epochs
      ends.push_back(weights());
    }
    ASSERT_EQ(closeness.size(), 6U);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(closeness[i], closeness[i + 3]);
    for (const auto& [name, tensor] : ends[0]) EXPECT_TRUE(tensor.equal(ends[1].at(name))) << name;
  }
}

TEST_F(NamesTest, ArriveInAStepOfSeveralOptimizers) {
  auto given = named_recipe();
  given.loss = {};
  given.optimizers = {{"line", [](torch::nn::Module& part) {
                         return std::make_unique<torch::optim::SGD>(part.parameters(),
                                                                    torch::optim::SGDOptions(0.1));
                       }}};
  given.network = [](int64_t) {
    auto net = std::make_shared<ColumnNet>();
    for (auto& parameter : net->parameters()) parameter.requires_grad_(false);
    for (auto& parameter : net->line->parameters()) parameter.requires_grad_(true);
    return net;
  };
  std::vector<std::string> names;
  given.training_step = [&](TrainingStep& step) {
    step.optimize("line", [&](const Batch& batch) {
      names = batch.inputs().names();
      const auto outputs = step.model().compute(batch.inputs());
      return (outputs["line"] - batch.targets["line"]).square().mean();
    });
  };
  EXPECT_EQ(train(given, World::join()), 0);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "square"}));
}

TEST_F(NamesTest, MistakesAreOneLine) {
  auto given = named_recipe();
  given.loss = [](const Tensors& outputs, const Tensors&) { return outputs["lime"].mean(); };
  EXPECT_EQ(refusal(given), "no tensor is named 'lime': there are line, bow, did you mean 'line'?");
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal(named_recipe({"x", "x", "line", "bow"})), "'line' named two inputs 'x'");
  has(refusal(named_recipe({"x", "square", "line", "line"})), "two tensors are named 'line'");
  has(refusal(named_recipe({"x", "square", "line", "changes"})),
      "'line' has batches of inputs [x, square] and targets [line, ");
}

/// Tiny pictures with a second input.
class NamedPictures final : public BatchMaker {
 public:
  explicit NamedPictures(std::unique_ptr<const BatchMaker> pictures)
      : pictures_(std::move(pictures)) {}
  int64_t size() const override { return pictures_->size(); }
  Batch make(const BatchRows& rows) const override {
    Batch batch = pictures_->make(rows);
    batch.set_inputs({{"picture", batch.images}, {"shift", batch.images.flatten(1).mean(1, true)}});
    batch.targets = {{"class", batch.targets[0]}};
    return batch;
  }

 private:
  std::unique_ptr<const BatchMaker> pictures_;
};

TEST(NamesOnRanks, GiveTheSameBitsOnOneAndTwo) {
  auto config = tiny_config();
  config.parallel.virtual_ranks = 2;
  config.train.gradient_accumulation_steps = 2;
  TinyHooks hooks;
  hooks.model = [](int, TinyModel& model) { model.by_name = true; };
  hooks.batches = [plain = hooks.batches](const std::shared_ptr<const ImageDataset>& images) {
    return std::make_unique<const NamedPictures>(plain(images));
  };
  hooks.task = [](const Config&) {
    const auto loss = [](const Tensors& outputs, const Tensors& targets) {
      return classification_loss(outputs["scores"], targets["class"], {});
    };
    return std::make_unique<ClassificationTask>(loss, kTinyClasses);
  };
  const auto one = run_tiny(1, config, hooks)[0];
  ASSERT_EQ(one.losses.size(), 12U);
  for (const auto& run : run_tiny(2, config, hooks)) {
    EXPECT_TRUE(same_weights(run, one));
    EXPECT_EQ(run.losses, one.losses);
  }
}

}  // namespace
}  // namespace lockstep
