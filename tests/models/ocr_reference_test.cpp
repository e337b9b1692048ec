// DBNet and CRNN against twins in PyTorch: the same names, and the same outputs for the same
// values.
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <torch/utils.h>

#include <cmath>
#include <map>

#include "tests/models/specs.h"
#include "tests/support/torch_script.h"

namespace lockstep {
namespace {

struct Answer {
  std::vector<std::string> names;
  std::vector<std::string> shapes;
  std::vector<double> values;
};

Answer ask_twin(const std::string& network) {
  const auto command = torch_script("tests/models/ocr_reference.py ") + network;
  FILE* pipe = ::popen(command.c_str(), "r");
  Answer answer;
  std::array<char, 1024> buffer;
  while (::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    const std::string line(buffer.data());
    const auto space = line.find(' ');
    const std::string kind = line.substr(0, space);
    const std::string rest = line.substr(space + 1, line.size() - space - 2);
    if (kind == "name") answer.names.push_back(rest);
    if (kind == "shape") answer.shapes.push_back(rest);
    if (kind == "value") answer.values.push_back(std::stod(rest));
  }
  EXPECT_EQ(::pclose(pipe), 0);
  return answer;
}

at::Tensor waves(int64_t count, double step, double phase) {
  return (at::arange(count, at::kDouble) * step + phase).sin();
}

/// The same values as fill() of the twin.
std::vector<std::string> fill(Model& model) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> values;
  for (const auto& item : model.named_parameters()) values[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) {
    if (!item.key().ends_with("num_batches_tracked")) values[item.key()] = item.value();
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    at::Tensor wave = waves(value.numel(), 0.7, static_cast<double>(names.size()));
    if (value.dim() > 1) {
      wave *= 2 / std::sqrt(static_cast<double>(value.numel() / value.size(0)));
    } else if (name.ends_with("running_var") || name.ends_with(".weight")) {
      wave = 1 + 0.5 * wave;
    } else {
      wave *= 0.1;
    }
    value.copy_(wave.view(value.sizes()));
    names.push_back(name);
  }
  return names;
}

Answer ask_model(Model& model, at::IntArrayRef shape) {
  const torch::NoGradGuard no_grad;
  Answer answer;
  answer.names = fill(model);
  const auto image = waves(c10::multiply_integers(shape), 0.013, 0).to(at::kFloat).view(shape);
  for (const bool training : {true, false}) {
    model.train(training);
    const auto out = model.forward(image);
    answer.shapes.push_back(fmt::format("{}", fmt::join(out.sizes(), " ")));
    const auto flat = out.flatten();
    for (int64_t i = 0; i < 64; ++i) {
      answer.values.push_back(flat[i * (flat.numel() - 1) / 63].item<double>());
    }
  }
  return answer;
}

void expect_twins(const std::string& network, const ModelSpec& spec, at::IntArrayRef shape) {
  const auto theirs = ask_twin(network);
  const auto ours = ask_model(*build_model(spec), shape);
  EXPECT_EQ(ours.names, theirs.names);
  EXPECT_EQ(ours.shapes, theirs.shapes);
  ASSERT_EQ(ours.values.size(), theirs.values.size());
  for (size_t i = 0; i < ours.values.size(); ++i) {
    EXPECT_NEAR(ours.values[i], theirs.values[i], 1e-4) << i;
  }
}

TEST(OcrAgainstPyTorch, Dbnet) {
  auto spec = dbnet("det_resnet18");
  spec.neck.out_channels = 32;
  expect_twins("dbnet", spec, {2, 3, 64, 96});
}

TEST(OcrAgainstPyTorch, DbnetPlusPlus) {
  auto spec = dbnet("det_resnet18", /*asf=*/true);
  spec.neck.out_channels = 32;
  expect_twins("dbnet++", spec, {2, 3, 64, 96});
}

TEST(OcrAgainstPyTorch, Crnn) {
  expect_twins("crnn", crnn("rec_vgg7", 11, 16), {2, 3, 32, 40});
}

}  // namespace
}  // namespace lockstep
