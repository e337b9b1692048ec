// The networks against PyTorch's: one seed gives the same names, shapes, order, initial values and
// outputs as a Python ResNet built from torch.nn modules.
#include <ATen/ops/linspace.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <torch/utils.h>

#include <sstream>

#include "lockstep/models/build/build_model.h"
#include "tests/support/torch_script.h"

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

Lines ask_torch(int depth, const std::string& stem, int seed) {
  const auto command = fmt::format("{} {} {} {}", torch_script("tests/models/resnet_reference.py"),
                                   depth, stem, seed);
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 65536> buffer;
  while (const size_t got = ::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0);
  Lines lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Lines describe(Model& model) {
  Lines lines;
  for (const auto& parameter : model.named_parameters()) {
    const at::Tensor flat = parameter.value().detach().to(at::kDouble).flatten();
    lines.push_back(fmt::format("{} {} {:.9g} {:.9g}", parameter.key(),
                                fmt::join(parameter.value().sizes(), "x"), flat[0].item<double>(),
                                flat[-1].item<double>()));
  }
  at::NoGradGuard no_grad;
  model.eval();
  const auto logits = model.forward(at::linspace(-1, 1, 3 * 32 * 32).view({1, 3, 32, 32}))[0];
  std::string text = "output";
  for (int64_t i = 0; i < 10; ++i) text += fmt::format(" {:.4f}", logits[i].item<double>());
  lines.push_back(text);
  for (const auto& buffer : model.named_buffers()) lines.push_back("buffer " + buffer.key());
  return lines;
}

void expect_same(int depth, Stem stem, const std::string& name) {
  const auto theirs = ask_torch(depth, name, 7);
  torch::manual_seed(7);
  const auto model =
      build_model({.backbone = {.name = fmt::format("resnet{}", depth), .stem = stem},
                   .head = {.num_classes = 10}});
  const auto ours = describe(*model);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i], theirs[i]);
}

TEST(ResNetAgainstPyTorch, BasicBlocks) {
  expect_same(18, Stem::kImageNet, "imagenet");
}

TEST(ResNetAgainstPyTorch, Bottlenecks) {
  expect_same(50, Stem::kCifar, "cifar");
}

}  // namespace
}  // namespace lockstep
