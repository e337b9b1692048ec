#include "lockstep/checkpoint/optimizer_state.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "lockstep/checkpoint/module_state.h"
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

TEST(OptimizerState, RefusesForeignParametersAndKinds) {
  SmallNet net;
  SmallNet other;
  optim::SGD sgd(other.parameters(), optim::SGDOptions(0.1));
  EXPECT_EQ(error_of([&] { optimizer_tensors(net, sgd); }).code(), ErrorCode::kInvalidArgument);
  optim::RMSprop rmsprop(net.parameters());
  EXPECT_EQ(error_of([&] { optimizer_kind(rmsprop); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
