// Parts by name, for programs without a file.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <string>

#include "lockstep/error.h"
#include "lockstep/foreach_optimizers.h"
#include "lockstep/train.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TEST(MakePart, AScheduleBehindAWarmUp) {
  const auto steps = make_part(schedules(), "step_decay", {"decay_rate=0.5", "decay_epochs=2"});
  const auto rate = [&](double epoch) {
    return steps({.epoch = epoch,
                  .step = epoch * 10,
                  .steps_per_epoch = 10,
                  .num_epochs = 9,
                  .lr = 0.8,
                  .warmup_epochs = 1});
  };
  EXPECT_EQ(rate(0.5), 0.4);
  EXPECT_EQ(rate(1), 0.8);
  EXPECT_EQ(rate(5), 0.2) << "two falls";
}

TEST(MakePart, AnOptimizer) {
  torch::nn::Linear layer(3, 2);
  const auto adamw = make_part(optimizers(), "adamw", {"beta1=0.5", "use_amsgrad=True"});
  const auto optimizer = adamw({{layer->parameters(), 0.25, 0.125}});
  ASSERT_NE(dynamic_cast<ForeachAdamW*>(optimizer.get()), nullptr);
  ASSERT_EQ(optimizer->param_groups().size(), 1U);
  const auto& options =
      static_cast<torch::optim::AdamWOptions&>(optimizer->param_groups()[0].options());
  EXPECT_EQ(std::get<0>(options.betas()), 0.5);
  EXPECT_TRUE(options.amsgrad());
  EXPECT_EQ(options.lr(), 0.25);
  EXPECT_EQ(options.weight_decay(), 0.125);
}

TEST(MakePart, SettingsMayNameVariables) {
  torch::nn::Linear layer(3, 2);
  const auto adamw = make_part(optimizers(), "adamw", {"eps=${NO_SUCH_VARIABLE:-0.5}"});
  const auto optimizer = adamw({{layer->parameters(), 0.25, 0.125}});
  const auto& options =
      static_cast<torch::optim::AdamWOptions&>(optimizer->param_groups()[0].options());
  EXPECT_EQ(options.eps(), 0.5);
  EXPECT_STREQ(
      error_of([] { make_part(optimizers(), "adamw", {"eps=${NO_SUCH_VARIABLE}"}); }).what(),
      "adamw: eps=${NO_SUCH_VARIABLE}: '${NO_SUCH_VARIABLE}': the environment variable "
      "NO_SUCH_VARIABLE is not set");
}

TEST(MakePart, ANetworkOfTheZoo) {
  const auto network = make_part(networks(), "mobilenet_v3_small", {"dropout=0"})(7);
  EXPECT_EQ(network->named_parameters()["classifier.3.bias"].numel(), 7);
}

TEST(MakePart, MistakesAreNamed) {
  const auto fault = [](const std::string& name, const std::vector<std::string>& settings) {
    return std::string(error_of([&] { make_part(optimizers(), name, settings); }).what());
  };
  EXPECT_EQ(fault("lion", {"beta3=0.5"}),
            "lion: beta3=0.5: unknown key 'lion.beta3', did you mean 'beta1'?");
  EXPECT_NE(fault("lion", {"beta1=2"}).find("lion: beta1=2: lion.beta1 must be a number from 0 to"),
            std::string::npos);
  EXPECT_EQ(fault("loin", {})
                .find("settings of loin: loin: no part 'loin' is registered, did you mean 'lion'?"),
            0U)
      << fault("loin", {});
}

}  // namespace
}  // namespace lockstep
