#include "lockstep/train/warm_up.h"

#include <torch/torch.h>

namespace lockstep {

void warm_up() {
  namespace fn = torch::nn::functional;
  // Small enough for one thread whatever their number.
  const auto images = torch::ones({2, 3, 8, 8});
  const auto kernel = torch::ones({4, 3, 3, 3}, torch::requires_grad());
  const auto scale = torch::ones({4}, torch::requires_grad());
  const auto head = torch::ones({10, 4}, torch::requires_grad());
  auto x = torch::conv2d(images, kernel, {}, 1, 1);
  x = torch::batch_norm(x, scale, scale, {}, {}, true, 0.1, 1e-5, false);
  x = fn::adaptive_avg_pool2d(torch::relu(x), fn::AdaptiveAvgPool2dFuncOptions(1)).flatten(1);
  const auto logits = torch::linear(x, head);
  torch::cross_entropy_loss(logits, torch::zeros({2}, torch::kLong)).backward();
  torch::NoGradGuard no_grad;
  head.sub_(head.grad(), 0.1);
}

}  // namespace lockstep
