#include "lockstep/weights.h"

#include <gtest/gtest.h>

#include "tests/checkpoint/small_net.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TensorMap copies(const torch::nn::Module& module) {
  TensorMap tensors = module_tensors(module);
  for (auto& [name, tensor] : tensors) tensor = tensor.detach().clone();
  return tensors;
}

void expect_refused(const TensorMap& tensors, const std::string& what) {
  SmallNet net;
  const TensorMap before = copies(net);
  const Error error = error_of([&] { load_module(net, tensors, "m.safetensors"); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(std::string(error.what()), "m.safetensors: " + what);
  for (const auto& [name, tensor] : module_tensors(net)) {
    EXPECT_TRUE(same_bits(tensor, before.at(name))) << name << " was changed";
  }
}

TEST(ModuleState, HasParametersAndBuffersUnderPyTorchsNames) {
  std::string names;
  for (const auto& [name, tensor] : module_tensors(SmallNet())) names += name + " ";
  EXPECT_EQ(names,
            "first.bias first.weight last.bias last.weight norm.bias norm.num_batches_tracked "
            "norm.running_mean norm.running_var norm.weight ");
}

TEST(ModuleState, LoadsIntoTheModulesOwnMemory) {
  SmallNet source;
  SmallNet target;
  const void* memory = target.first->weight.data_ptr();
  load_module(target, copies(source), "m");
  EXPECT_EQ(target.first->weight.data_ptr(), memory);
  EXPECT_TRUE(target.first->weight.requires_grad());
  for (const auto& [name, tensor] : module_tensors(source)) {
    EXPECT_TRUE(same_bits(module_tensors(target).at(name), tensor)) << name;
  }
}

TEST(ModuleState, NamesWhatDoesNotFit) {
  TensorMap tensors = copies(SmallNet());
  tensors.erase("last.bias");
  expect_refused(tensors, "tensor 'last.bias' of the network is missing");

  tensors = copies(SmallNet());
  tensors["first.weigth"] = at::zeros({1});
  expect_refused(tensors,
                 "tensor 'first.weigth' is not one of the network's, did you mean 'first.weight'?");

  tensors = copies(SmallNet());
  tensors["norm.bias"] = at::zeros({9});
  expect_refused(tensors, "tensor 'norm.bias' has shape [9], the network's has [8]");

  tensors = copies(SmallNet());
  tensors["norm.bias"] = at::zeros({8}, at::kDouble);
  expect_refused(tensors, "tensor 'norm.bias' is Double, the network's is Float");
}

// copy_() refuses such a tensor in the middle of the others.
TEST(ModuleState, NamesATensorThatCannotBeFilled) {
  for (const bool sparse : {true, false}) {
    SmallNet net;
    net.register_buffer("other", sparse ? at::eye(4).to_sparse() : at::ones({1, 8}).expand({4, 8}));
    TensorMap tensors = copies(SmallNet());
    tensors["other"] = at::zeros({4, sparse ? 4 : 8});
    const TensorMap before = copies(net);
    const Error error = error_of([&] { load_module(net, tensors, "m.safetensors"); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_EQ(text.find("tensor 'other' "), 0) << text;
    EXPECT_NE(text.find(sparse ? "is not dense" : "contiguous() it"), std::string::npos) << text;
    for (const auto& [name, tensor] : copies(SmallNet())) {
      EXPECT_TRUE(same_bits(module_tensors(net).at(name), before.at(name))) << name;
    }
  }
}

}  // namespace
}  // namespace lockstep
