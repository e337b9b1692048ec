#include "lockstep/models/loss/ctc_loss.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>

#include "tests/models/gradcheck.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Label = std::vector<int32_t>;

at::Tensor labels_of(const std::vector<Label>& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row, at::kInt));
  return at::stack(tensors);
}

double loss_of(const at::Tensor& logits, const std::vector<Label>& rows, int64_t frames) {
  const auto loss = make_ctc_loss({.pred_seq_len = frames, .max_label_len = 1});
  const std::vector<at::Tensor> targets = {labels_of(rows)};
  return (*loss)(logits, targets).item<double>();
}

TEST(CtcLoss, ByHandOnEqualLogits) {
  // Three classes, the last is blank; every path of two frames has probability 1/9.
  const auto two = at::zeros({2, 1, 3});
  EXPECT_NEAR(loss_of(two, {{0, 2}}, 2), std::log(9.0 / 3), 1e-6);  // aa, a-, -a
  EXPECT_NEAR(loss_of(two, {{0, 1}}, 2), std::log(9.0), 1e-6);
  EXPECT_NEAR(loss_of(two, {{2, 2}}, 2), std::log(9.0), 1e-6);                    // empty: --
  EXPECT_NEAR(loss_of(at::zeros({3, 1, 3}), {{0, 0}}, 3), std::log(27.0), 1e-6);  // a-a
}

TEST(CtcLoss, IsTheMeanOverImagesWhateverTheirLengths) {
  EXPECT_NEAR(loss_of(at::zeros({2, 2, 3}), {{0, 1}, {0, 2}}, 2),
              (std::log(9.0) + std::log(3.0)) / 2, 1e-6);
}

TEST(CtcLoss, RowsMayBeLongerThanTheFrames) {
  EXPECT_NEAR(loss_of(at::zeros({2, 1, 3}), {{0, 2, 2, 5, 99}}, 2), std::log(3.0), 1e-6);
}

TEST(CtcLoss, OnlyTheFirstFramesCount) {
  torch::manual_seed(3);
  const auto logits = at::randn({4, 1, 3}, at::kDouble);
  EXPECT_EQ(loss_of(logits, {{0, 2}}, 3), loss_of(logits.narrow(0, 0, 3), {{0, 2}}, 3));
}

TEST(CtcLoss, ALabelThatFitsNoPathAddsNothing) {
  auto logits = at::zeros({2, 2, 3}, at::kDouble).set_requires_grad(true);
  const auto loss = make_ctc_loss({.pred_seq_len = 2, .max_label_len = 1});
  const std::vector<at::Tensor> targets = {labels_of({{0, 0}, {0, 2}})};  // "aa" needs 3 frames
  const auto sum = (*loss)(logits, targets);
  EXPECT_NEAR(sum.item<double>(), std::log(3.0) / 2, 1e-9);
  sum.backward();
  EXPECT_EQ(logits.grad().select(1, 0).abs().sum().item<double>(), 0);
  EXPECT_GT(logits.grad().select(1, 1).abs().sum().item<double>(), 0);
}

/// The sum over all paths, one by one.
double naive_loss(const at::Tensor& logits, const Label& label) {
  const auto p = at::log_softmax(logits.select(1, 0), 1).exp();
  const int64_t frames = p.size(0), classes = p.size(1), blank = classes - 1;
  double sum = 0;
  for (int64_t code = 0; code < std::llround(std::pow(classes, frames)); ++code) {
    Label read;
    double probability = 1;
    int64_t last = blank, rest = code;
    for (int64_t t = 0; t < frames; ++t, rest /= classes) {
      const int64_t k = rest % classes;
      probability *= p[t][k].item<double>();
      if (k != last && k != blank) read.push_back(static_cast<int32_t>(k));
      last = k;
    }
    if (read == label) sum += probability;
  }
  return -std::log(sum);
}

TEST(CtcLoss, IsTheSumOverAllPaths) {
  torch::manual_seed(4);
  const auto logits = at::randn({5, 1, 4}, at::kDouble);
  for (const Label& label : {Label{}, {1}, {0, 2}, {1, 1}, {2, 0, 2}, {0, 0, 1}}) {
    Label padded = label;
    padded.resize(6, 3);
    EXPECT_NEAR(loss_of(logits, {padded}, 5), naive_loss(logits, label), 1e-9);
  }
}

TEST(CtcLoss, GradientsAreThoseOfTheFormula) {
  torch::manual_seed(5);
  const auto loss = make_ctc_loss({.pred_seq_len = 5, .max_label_len = 3});
  const std::vector<at::Tensor> targets = {labels_of({{1, 1, 3}, {3, 3, 3}, {0, 2, 1}})};
  expect_gradients([&](const auto& in) { return (*loss)(in[0], targets); },
                   {at::randn({5, 3, 4}, at::kDouble)});
}

TEST(CtcLoss, ComputesReducedPrecisionInFloat32) {
  const auto loss = make_ctc_loss({.pred_seq_len = 2, .max_label_len = 1});
  const std::vector<at::Tensor> targets = {labels_of({{0, 2}})};
  EXPECT_EQ((*loss)(at::zeros({2, 1, 3}, at::kHalf), targets).scalar_type(), at::kFloat);
}

std::string ctc_error(const at::Tensor& logits, const std::vector<Label>& rows, int64_t frames) {
  return error_of([&] { loss_of(logits, rows, frames); }).what();
}

TEST(CtcLoss, RefusesWhatItCannotMean) {
  const auto logits = at::zeros({3, 2, 4});
  EXPECT_NE(ctc_error(logits, {{0, 1, 3}, {0, 3, 1}}, 3).find("image 1 has 1 at place 2"),
            std::string::npos);
  EXPECT_NE(ctc_error(logits, {{0, -1, 3}, {0, 3, 3}}, 3).find("image 0 has -1 at place 1"),
            std::string::npos);
  EXPECT_NE(ctc_error(logits, {{0, 1}, {0, 3}}, 4).find("3 frames, loss.pred_seq_len is 4"),
            std::string::npos);
  EXPECT_NE(ctc_error(logits, {{0, 1}}, 3).find("(3, 2, 4) with text_seq (1, 2)"),
            std::string::npos);
  EXPECT_THROW(make_ctc_loss({.pred_seq_len = 25, .max_label_len = 25}), Error);
}

}  // namespace
}  // namespace lockstep
