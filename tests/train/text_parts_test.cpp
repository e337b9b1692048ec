// Registered parts of a detector and a recogniser, as a configuration names them.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "lockstep/train/task/task.h"
#include "tests/support/error_of.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

const LossPart kWeighed("weighed_mean", "the outputs' mean, where the first target is 1",
                        [](Section& settings) -> LossFunction {
                          int64_t weight = 1;
                          settings.read("weight", weight, {1, 9}, "of the mean");
                          return [=](const Tensors& outputs, const Tensors& targets) {
                            return weight *
                                   (outputs[0].select(1, 0) * targets[0].select(1, 0)).mean();
                          };
                        });
const LossPart kMany("each_output", "no mean", [](Section&) -> LossFunction {
  return [](const Tensors& outputs, const Tensors&) { return outputs[0]; };
});

TEST(TextParts, ALossGetsTheMapsAndTheirTargets) {
  const auto task = make_task(read_text(kDetector, {"loss={name: weighed_mean, weight: 3}"}));
  EXPECT_TRUE(task->log_names().empty());
  const auto maps = torch::full({2, 3, 8, 8}, 0.5).requires_grad_();
  const auto ones = torch::ones({2, 8, 8});
  const auto loss = task->loss({maps}, {ones.unsqueeze(1), ones, ones, ones});
  EXPECT_EQ(loss.item<double>(), 1.5);
  loss.backward();
  EXPECT_TRUE(maps.grad().defined());
}

TEST(TextParts, ALossGetsFramesAndTexts) {
  const auto task = make_task(read_text(kRecogniser, {"loss={name: weighed_mean}"}));
  const auto frames = torch::full({5, 2, 37}, 0.25);
  EXPECT_EQ(task->loss({frames}, {torch::ones({37, 4}, torch::kInt)}).item<double>(), 0.25);
}

TEST(TextParts, ALossMustBeOneNumber) {
  const auto task = make_task(read_text(kRecogniser, {"loss={name: each_output}"}));
  EXPECT_STREQ(error_of([&] {
                 task->loss({torch::zeros({2, 3})}, {});
               }).what(),
               "loss: 'each_output' gave 6 numbers, not one number");
}

}  // namespace
}  // namespace lockstep
