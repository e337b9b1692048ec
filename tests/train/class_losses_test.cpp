#include "lockstep/train/task/class_losses.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "lockstep/error.h"
#include "lockstep/train/task/classification.h"
#include "tests/models/gradcheck.h"
#include "tests/support/error_of.h"
#include "tests/train/expected.h"

namespace lockstep {
namespace {

/// Inputs, and PyTorch's losses of them.
struct Numbers {
  nlohmann::json all = expected_in("class_losses_expected.json");
  at::Tensor logits = matrix_of(all["logits"]);
  at::Tensor teacher = matrix_of(all["teacher"]);
  at::Tensor labels = labels_of(all["labels"]);
  at::Tensor several = matrix_of(all["several"]);
  std::vector<double> weights = all["weights"];

  at::Tensor one_hot() const { return at::one_hot(labels, logits.size(1)).to(at::kDouble); }
  void expect(const at::Tensor& loss, const char* name) const {
    EXPECT_EQ(loss.dim(), 0) << name;
    EXPECT_NEAR(loss.item<double>(), all["losses"].at(name).get<double>(), 1e-12) << name;
  }
};

/// The gradient of a loss of the logits alone.
void expect_gradient(const Numbers& numbers, const std::function<at::Tensor(at::Tensor)>& loss) {
  expect_gradients([&](const std::vector<at::Tensor>& inputs) { return loss(inputs[0]); },
                   {numbers.logits});
}

TEST(FocalLoss, IsPyTorchs) {
  const Numbers n;
  n.expect(focal_loss(n.logits, n.labels, {.gamma = 0}), "cross_entropy");
  n.expect(focal_loss(n.logits, n.labels, {.gamma = 2}), "focal_2");
  n.expect(focal_loss(n.logits, n.labels, {.gamma = 2, .alpha = {0.25}}), "focal_2_quarter");
  n.expect(focal_loss(n.logits, n.labels, {.gamma = 0.5, .alpha = n.weights}), "focal_0.5_alpha");
  n.expect(focal_loss(n.logits, n.one_hot(), {.gamma = 0.5, .alpha = n.weights}),
           "focal_0.5_alpha");
}

TEST(FocalLoss, HasTheGradientOfFiniteDifferences) {
  const Numbers n;
  expect_gradient(n, [&](const at::Tensor& x) {
    return focal_loss(x, n.labels, {.gamma = 0.5, .alpha = n.weights});
  });
  expect_gradient(n, [&](const at::Tensor& x) { return focal_loss(x, n.several, {.gamma = 2}); });
}

TEST(FocalLoss, HasAFiniteGradientWhereTheNetworkIsSure) {
  const auto logits = torch::tensor({{200.0f, 0.0f}}).requires_grad_();
  focal_loss(logits, torch::tensor({0}), {.gamma = 0.5}).backward();
  EXPECT_TRUE(logits.grad().isfinite().all().item<bool>());
}

TEST(BceLoss, IsPyTorchs) {
  const Numbers n;
  n.expect(bce_loss(n.logits, n.labels, {}), "bce");
  n.expect(bce_loss(n.logits, n.one_hot(), {}), "bce");
  n.expect(bce_loss(n.logits, n.labels, {.smoothing = 0.1}), "bce_smooth");
  n.expect(bce_loss(n.logits, n.labels, {.sum_classes = true}), "bce_sum");
  n.expect(bce_loss(n.logits, n.several, {.smoothing = 0.1}), "bce_several");
  n.expect(bce_loss(n.logits, n.several, {.pos_weight = n.weights}), "bce_several_weights");
}

TEST(BceLoss, HasTheGradientOfFiniteDifferences) {
  const Numbers n;
  expect_gradient(n, [&](const at::Tensor& x) {
    return bce_loss(x, n.several, {.pos_weight = n.weights, .sum_classes = true});
  });
  expect_gradient(n,
                  [&](const at::Tensor& x) { return bce_loss(x, n.labels, {.smoothing = 0.1}); });
}

DistillationConfig distillation(double temperature, double weight, double smoothing) {
  DistillationConfig config;
  config.temperature = temperature;
  config.weight = weight;
  config.smoothing = smoothing;
  return config;
}

TEST(DistillationLoss, IsPyTorchs) {
  const Numbers n;
  n.expect(distillation_loss(n.logits, n.labels, n.teacher, distillation(4, 0.7, 0)),
           "distillation");
  n.expect(distillation_loss(n.logits, n.labels, n.teacher, distillation(2, 0.5, 0.1)),
           "distillation_smooth");
  n.expect(distillation_loss(n.logits, n.labels, n.teacher, distillation(2, 0, 0)),
           "cross_entropy");
}

TEST(DistillationLoss, HasTheGradientOfFiniteDifferences) {
  const Numbers n;
  expect_gradient(n, [&](const at::Tensor& x) {
    return distillation_loss(x, n.labels, n.teacher, distillation(4, 0.7, 0.1));
  });
}

TEST(ClassLosses, RefuseTargetsThatDoNotFit) {
  const Numbers n;
  const auto error = error_of([&] { focal_loss(n.logits, n.several.narrow(1, 0, 3), {}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(),
               "FocalLoss: the network gave (6, 4), the targets are (6, 3): they must be labels "
               "(N), or a number for each class (N, K), for logits (N, K)");
  EXPECT_EQ(error_of([&] { bce_loss(n.logits, n.labels.narrow(0, 0, 3), {}); }).code(),
            ErrorCode::kInvalidArgument);
  const auto fractions = n.labels.to(at::kFloat);
  EXPECT_STREQ(
      error_of([&] { bce_loss(n.logits, fractions, {}); }).what(),
      "BCEWithLogitsLoss: the network gave (6, 4), the targets are (6) of type Float: they "
      "must be labels (N), or a number for each class (N, K), for logits (N, K)");
  EXPECT_EQ(error_of([&] { classification_loss(n.logits, fractions, {}); }).code(),
            ErrorCode::kInvalidArgument);
  const auto other = n.teacher.narrow(1, 0, 3);
  EXPECT_STREQ(error_of([&] { distillation_loss(n.logits, n.labels, other, {}); }).what(),
               "DistillationLoss: the network gave (6, 4), the teacher (6, 3)");
}

TEST(ClassLosses, RefuseARegression) {
  const auto curve = torch::rand({6, 1, 64});
  EXPECT_STREQ(error_of([&] { classification_loss(curve, curve, {}); }).what(),
               "CrossEntropySmooth: the network gave (6, 1, 64): of one class this loss is always "
               "0, whatever the targets are");
  const auto numbers = torch::rand({6, 1});
  EXPECT_EQ(error_of([&] { focal_loss(numbers, numbers, {}); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_NO_THROW(bce_loss(numbers, numbers.round(), {}));  // one class that is there or not
}

TEST(ClassLosses, RefuseLabelsThatAreNoClass) {
  const Numbers n;
  const std::string why = ": the label 4 is out of range: the network has 4 classes, from 0 on";
  auto labels = n.labels.clone();
  labels[2] = 4;
  EXPECT_EQ(error_of([&] { classification_loss(n.logits, labels, {}); }).what(),
            "CrossEntropySmooth" + why);
  EXPECT_EQ(error_of([&] { focal_loss(n.logits, labels, {}); }).what(), "FocalLoss" + why);
  EXPECT_EQ(error_of([&] { bce_loss(n.logits, labels, {}); }).what(), "BCEWithLogitsLoss" + why);
  labels[2] = -100;
  EXPECT_TRUE(classification_loss(n.logits, labels, {}).isfinite().item<bool>());
}

// A label for each place of a map.
TEST(ClassLosses, CrossEntropyTakesMaps) {
  const auto logits = torch::rand({2, 3, 4, 5});
  const auto labels = torch::randint(3, {2, 4, 5}, at::kLong);
  EXPECT_EQ(classification_loss(logits, labels, {}).dim(), 0);
  EXPECT_EQ(classification_loss(logits, logits.softmax(1), {}).dim(), 0);
  EXPECT_EQ(error_of([&] { classification_loss(logits, labels.narrow(1, 0, 3), {}); }).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
