// Frozen layers and rates of groups, from the optimizer to runs on several ranks.

#include "lockstep/train/optim/parameter_groups.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <set>

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/log/training_log.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

GroupConfig group_of_params(const std::vector<std::string>& params) {
  GroupConfig group;
  group.params = params;
  group.where = "a.yaml:1";
  return group;
}

GroupConfig frozen_group(const std::vector<std::string>& params) {
  GroupConfig group = group_of_params(params);
  group.frozen = group.keep_statistics = true;
  return group;
}

/// The first layer and the norm stay as they are, the last layer has a rate of its own.
Config frozen_config() {
  auto config = tiny_config();
  config.optimizer.groups = {frozen_group({"first", "norm"}), group_of_params({"last.bias"})};
  config.optimizer.groups[1].lr_scale = 2;
  return config;
}

TEST(ParameterGroups, HaveTheRateAndDecayOfTheirGroup) {
  TinyModel model(true);
  OptimizerConfig config;
  config.weight_decay = 0.5;
  config.groups = {group_of_params({"last"}), frozen_group({"norm"})};
  config.groups[0].lr_scale = 10;
  config.groups[0].weight_decay = 0.25;
  freeze_parameters(config, model);
  const auto groups = parameter_groups(config, model, 0.1);
  ASSERT_EQ(groups.size(), 4U);
  const auto is = [&](size_t i, const at::Tensor& parameter, double lr, double decay) {
    return groups[i].parameters.size() == 1 && groups[i].parameters[0].is_same(parameter) &&
           groups[i].lr == lr && groups[i].weight_decay == decay;
  };
  EXPECT_TRUE(is(0, model.first->weight, 0, 0.5));
  EXPECT_TRUE(is(1, model.last->weight, 1, 0.25));
  EXPECT_TRUE(is(2, model.last->bias, 1, 0)) << "the exceptions from decay remain";
  EXPECT_TRUE(is(3, model.first->bias, 0, 0));
  EXPECT_EQ(count_trainable(model), 48 * 16 + 16 + 16 * 10 + 10);
  EXPECT_EQ(groups_line(config, model),
            "Parameters: 4 of 6 are trained, 2 are frozen; rates of 1 to 10 times the schedule's");
  EXPECT_EQ(groups_line({}, model), "");
}

TEST(ParameterGroups, ARateOfAGroupCountsInThePlaceOfItsLayers) {
  TinyModel model(true);
  OptimizerConfig config;
  config.layer_decay = 0.5;
  config.groups = {group_of_params({"norm"})};
  config.groups[0].lr_scale = 3;
  std::set<double> rates;
  for (const auto& group : parameter_groups(config, model, 1)) rates.insert(group.lr);
  EXPECT_EQ(rates, (std::set<double>{0.25, 3, 0}));  // first, norm; last has the schedule's
}

TEST(ParameterGroups, HoldATensorOfTwoNamesOnceByItsFirstName) {
  TinyModel model(true);
  const int64_t numbers = count_trainable(model);
  model.last->register_parameter("tied", model.first->weight);
  OptimizerConfig config;
  config.groups = {group_of_params({"last.tied"}), group_of_params({"first.weight"})};
  config.groups[0].lr_scale = 5;
  config.groups[1].lr_scale = 3;
  std::vector<double> rates;
  for (const auto& group : parameter_groups(config, model, 1)) {
    for (const auto& parameter : group.parameters) {
      if (parameter.is_same(model.first->weight)) rates.push_back(group.lr);
    }
  }
  EXPECT_EQ(rates, std::vector<double>{3});
  EXPECT_EQ(count_trainable(model), numbers);
  EXPECT_EQ(groups_line(config, model),
            "Parameters: 6 of 6 are trained, 0 are frozen; rates of 1 to 3 times the schedule's");
}

TEST(ParameterGroups, NothingLeftToTrainIsAnError) {
  TinyModel model(true);
  OptimizerConfig config;
  config.groups = {frozen_group({"*"})};
  freeze_parameters(config, model);
  EXPECT_STREQ(error_of([&] { parameter_groups(config, model, 1); }).what(),
               "the model has no parameter to train");
  config.groups = {frozen_group({"frist"})};
  EXPECT_NE(std::string(error_of([&] { freeze_parameters(config, model); }).what())
                .find("did you mean 'first'?"),
            std::string::npos);
}

TEST(FrozenLayers, StayAsTheyAreAndTheOthersFollowTheirRates) {
  const auto config = frozen_config();
  std::vector<at::Tensor> before;
  TinyHooks hooks;
  hooks.model = [&](int rank, TinyModel& model) {
    if (rank != 0) return;
    for (const auto& tensor : model.parameters()) before.push_back(tensor.detach().clone());
    for (const auto& tensor : model.buffers()) before.push_back(tensor.clone());
  };
  const auto runs = run_tiny(2, config, hooks);
  const auto& after = runs[0].weights;
  for (size_t i = 0; i < before.size(); ++i) {
    const bool trained = i == 4 || i == 5;  // the last layer's
    EXPECT_EQ(after[i].equal(before[i]), !trained) << i;
  }
  EXPECT_TRUE(same_weights(runs[0], runs[1]));
  // The first step of SGD is the rate times the gradient.
  auto plain = config;
  plain.optimizer.groups[1].lr_scale.reset();
  plain.train.max_steps = 1;
  auto doubled = config;
  doubled.train.max_steps = 1;
  const auto one = run_tiny(1, plain)[0], two = run_tiny(1, doubled)[0];
  EXPECT_TRUE(one.weights[4].equal(two.weights[4]));
  EXPECT_TRUE((two.weights[5] - before[5]).allclose((one.weights[5] - before[5]) * 2, 1e-5, 1e-8));
}

TEST(FrozenLayers, WithoutKeepStatisticsTheirNormsGoOnCounting) {
  auto config = frozen_config();
  config.optimizer.groups[0].keep_statistics = false;
  const auto run = run_tiny(1, config)[0];
  EXPECT_EQ(run.weights.back().item<int64_t>(), run.state.step) << "batches tracked";
}

TEST(FrozenLayers, HaveTheSameBitsOnAnyRanks) {
  for (const int virtual_ranks : {3, 4}) {
    auto config = frozen_config();
    config.parallel.virtual_ranks = virtual_ranks;
    config.train.loader.batch_size = 2;
    const auto one = run_tiny(1, config)[0];
    TinyHooks hooks;
    std::vector<at::Tensor> before;
    hooks.model = [&](int rank, TinyModel& model) {
      if (rank != 0) return;
      for (const auto& tensor : model.buffers()) before.push_back(tensor.clone());
    };
    for (const int ranks : {2, virtual_ranks}) {
      before.clear();
      const auto runs = run_tiny(ranks, config, hooks);
      EXPECT_TRUE(same_weights(runs[0], one)) << ranks << " of " << virtual_ranks;
      EXPECT_EQ(runs[0].losses, one.losses);
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(runs[0].weights[kTinyParameters + i].equal(before[i])) << i;
      }
    }
  }
}

// The mean of three equal numbers may have another last bit.
TEST(FrozenLayers, KeepStatisticsThatAnAverageWouldRound) {
  auto config = frozen_config();
  config.parallel.virtual_ranks = 3;
  config.train.loader.batch_size = 2;
  TinyHooks hooks;
  at::Tensor given;
  hooks.model = [&](int, TinyModel& model) {
    const at::NoGradGuard no_grad;
    model.norm->running_mean.copy_(at::linspace(0.1, 1.7, 16));
    given = model.norm->running_mean.clone();
  };
  EXPECT_TRUE(run_tiny(1, config, hooks)[0].weights[kTinyParameters].equal(given));
}

TEST(FrozenLayers, AResumedRunHasTheBitsOfAWholeOne) {
  auto config = frozen_config();
  config.optimizer.opt = "adamw";
  const auto whole = run_tiny(1, config)[0];
  const TempFolder dir;
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  run_tiny(1, config, hooks);
  config.train.max_steps = 0;
  TinyHooks resumed;
  resumed.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  const auto rest = run_tiny(1, config, resumed)[0];
  EXPECT_EQ(rest.losses.size(), whole.losses.size() - 8);
  EXPECT_TRUE(same_weights(rest, whole));
}

TEST(FrozenLayers, AreSavedWithMasterWeightsToo) {
  auto config = frozen_config();
  config.system.amp_level = AmpLevel::kO2;
  TinyHooks hooks;
  at::Tensor before;
  hooks.model = [&](int, TinyModel& model) { before = model.first->weight.detach().clone(); };
  const auto run = run_tiny(1, config, hooks)[0];
  EXPECT_TRUE(run.weights[0].equal(before));
  EXPECT_TRUE(std::isfinite(run.losses.back()));
}

}  // namespace
}  // namespace lockstep
