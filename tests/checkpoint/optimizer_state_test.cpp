#include "lockstep/checkpoint/optimizer_state.h"

#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "lockstep/checkpoint/named_state.h"
#include "lockstep/weights.h"
#include "tests/checkpoint/small_net.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

namespace optim = torch::optim;
using OptimizerPtr = std::unique_ptr<optim::Optimizer>;

struct Case {
  const char* name;
  const char* kind;
  size_t num_tensors;  // for the 6 parameters of SmallNet
  OptimizerPtr (*make)(SmallNet&);
};

const Case kCases[] = {
    {"momentum", "SGD", 6,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::SGD>(net.parameters(),
                                           optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
     }},
    {"plain", "SGD", 0,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.1));
     }},
    {"adam", "Adam", 18,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions(0.01));
     }},
    {"amsgrad", "Adam", 24,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::Adam>(net.parameters(),
                                            optim::AdamOptions(0.01).amsgrad(true));
     }},
    {"adamw", "AdamW", 18,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(0.01));
     }},
    {"adagrad", "Adagrad", 12,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::Adagrad>(
           net.parameters(), optim::AdagradOptions(0.1).initial_accumulator_value(0.1));
     }},
    {"rmsprop", "RMSprop", 12,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::RMSprop>(net.parameters(), optim::RMSpropOptions(0.01));
     }},
    {"rmsprop_with_all", "RMSprop", 24,
     [](SmallNet& net) -> OptimizerPtr {
       return std::make_unique<optim::RMSprop>(
           net.parameters(), optim::RMSpropOptions(0.01).momentum(0.9).centered(true));
     }},
};

class OptimizerStateTest : public ::testing::TestWithParam<Case> {};

TEST_P(OptimizerStateTest, TwoHalvesAreTheWhole) {
  SmallNet whole;
  whole.eval();
  SmallNet resumed;
  resumed.eval();
  load_module(resumed, module_tensors(whole), "");
  const OptimizerPtr optimizer = GetParam().make(whole);
  train(whole, *optimizer, 0, 3);

  const OptimizerPtr fresh = GetParam().make(resumed);
  load_module(resumed, module_tensors(whole), "");
  const TensorMap state = optimizer_tensors(whole, *optimizer);
  EXPECT_EQ(state.size(), GetParam().num_tensors);
  load_optimizer(resumed, *fresh, state, "");
  EXPECT_EQ(optimizer_kind(*fresh), GetParam().kind);

  train(whole, *optimizer, 3, 3);
  train(resumed, *fresh, 3, 3);
  for (const auto& [name, tensor] : module_tensors(whole)) {
    EXPECT_TRUE(same_bits(module_tensors(resumed).at(name), tensor)) << name;
  }
  const TensorMap again = optimizer_tensors(resumed, *fresh);
  for (const auto& [name, tensor] : optimizer_tensors(whole, *optimizer)) {
    EXPECT_TRUE(same_bits(again.at(name), tensor)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerStateTest, ::testing::ValuesIn(kCases),
                         [](const auto& row) { return row.param.name; });

class AdamStateTest : public ::testing::Test {
 protected:
  AdamStateTest() { train(net_, optimizer_, 0, 1); }

  void expect_refused(const TensorMap& tensors, const std::string& what) {
    const Error error = error_of([&] { load_optimizer(net_, optimizer_, tensors, "o"); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_EQ(std::string(error.what()), "o: tensor " + what);
    EXPECT_EQ(optimizer_tensors(net_, optimizer_).size(), 18u) << "was changed";
  }
  TensorMap tensors() const { return optimizer_tensors(net_, optimizer_); }

  SmallNet net_;
  optim::Adam optimizer_{net_.parameters(), optim::AdamOptions(0.01)};
};

TEST_F(AdamStateTest, NamesWhatDoesNotFit) {
  TensorMap changed = tensors();
  changed.erase("first.bias.exp_avg_sq");
  expect_refused(changed, "'first.bias.exp_avg_sq' is missing");

  changed = tensors();
  changed.erase("first.bias.step");
  expect_refused(changed, "'first.bias.step' is missing");

  changed = tensors();
  changed["first.bias.step"] = at::zeros({});
  expect_refused(changed, "'first.bias.step' is not one whole number (I64, shape [])");

  changed = tensors();
  changed["first.bias.exp_avg"] = at::zeros({3});
  expect_refused(changed, "'first.bias.exp_avg' has shape [3], its parameter [8]");

  changed = tensors();
  changed["first.bias.exp_avg"] = at::zeros({8}, at::kDouble);
  expect_refused(changed, "'first.bias.exp_avg' is Double, its parameter Float");

  changed = tensors();
  changed["other.bias.exp_avg"] = at::zeros({8});
  expect_refused(changed, "'other.bias.exp_avg' is of no parameter");
}

TEST_F(AdamStateTest, AParameterWithoutStateLosesIt) {
  TensorMap changed = tensors();
  for (const char* slot : {"exp_avg", "exp_avg_sq", "step"}) {
    changed.erase(std::string("first.bias.") + slot);
  }
  load_optimizer(net_, optimizer_, changed, "o");
  EXPECT_EQ(tensors().size(), 15u);
}

TEST_F(AdamStateTest, TakesTensorsThatNobodyElseHas) {
  const auto place = [&] { return tensors().at("first.weight.exp_avg").data_ptr(); };
  TensorMap copies;
  for (const auto& [name, tensor] : tensors()) copies[name] = tensor.clone();
  const void* const own = copies.at("first.weight.exp_avg").data_ptr();
  load_optimizer(net_, optimizer_, copies, "o");
  EXPECT_NE(place(), own) << "another holder would see the next step";
  load_optimizer(net_, optimizer_, std::move(copies), "o");
  EXPECT_EQ(place(), own);

  const at::Tensor whole = at::zeros({2, 8, 4});
  TensorMap views = tensors();
  views["first.weight.exp_avg"] = whole.select(0, 1);
  load_optimizer(net_, optimizer_, std::move(views), "o");
  EXPECT_NE(place(), whole.select(0, 1).data_ptr()) << "its memory is also of another tensor";
}

TEST(OptimizerState, RefusesForeignParametersAndKinds) {
  SmallNet net;
  SmallNet other;
  optim::SGD sgd(other.parameters(), optim::SGDOptions(0.1));
  EXPECT_EQ(error_of([&] { optimizer_tensors(net, sgd); }).code(), ErrorCode::kInvalidArgument);
  struct Own : optim::Optimizer {
    using Optimizer::Optimizer;
    at::Tensor step(LossClosure) override { return {}; }
  };
  const Own own({optim::OptimizerParamGroup(net.parameters())},
                std::make_unique<optim::SGDOptions>(0.1));
  EXPECT_EQ(error_of([&] { optimizer_kind(own); }).code(), ErrorCode::kInvalidArgument);
}

/// Steps of an optimizer that evaluates the loss itself.
void minimise(SmallNet& net, optim::LBFGS& optimizer, int steps) {
  const auto images = at::linspace(-1, 1, 8).view({2, 4});
  for (int step = 0; step < steps; ++step) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const auto loss = net.forward(images).square().mean();
      loss.backward();
      return loss;
    });
  }
}

TEST(OptimizerState, LbfgsGoesOnToo) {
  SmallNet whole, resumed;
  whole.eval();
  resumed.eval();
  const auto options = optim::LBFGSOptions(0.1).max_iter(3).history_size(4);
  optim::LBFGS optimizer(whole.parameters(), options), fresh(resumed.parameters(), options);
  minimise(whole, optimizer, 3);
  load_module(resumed, module_tensors(whole), "");
  TensorMap state = optimizer_tensors(whole, optimizer);
  for (auto& [name, tensor] : state) tensor = tensor.clone();
  load_optimizer(resumed, fresh, state, "");
  EXPECT_EQ(optimizer_kind(fresh), "LBFGS");
  minimise(whole, optimizer, 2);
  minimise(resumed, fresh, 2);
  for (const auto& [name, tensor] : module_tensors(whole)) {
    EXPECT_TRUE(same_bits(module_tensors(resumed).at(name), tensor)) << name;
  }
  ASSERT_EQ(state.erase("first.weight.n_iter"), 1u);
  EXPECT_EQ(error_of([&] { load_optimizer(resumed, fresh, state, "o"); }).code(),
            ErrorCode::kCorrupt);
}

struct OfAUser : optim::Optimizer {
  explicit OfAUser(std::vector<at::Tensor> parameters)
      : Optimizer({optim::OptimizerParamGroup(std::move(parameters))},
                  std::make_unique<optim::SGDOptions>(0.1)) {}
  at::Tensor step(LossClosure) override { return {}; }
};

TEST(OptimizerState, OfOthersIsRefusedWithTheNamesOfThoseThatAreHeld) {
  SmallNet net;
  const OfAUser optimizer(net.parameters());
  const Error error = error_of([&] { optimizer_tensors(net, optimizer); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("RMSprop and LBFGS"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace lockstep
