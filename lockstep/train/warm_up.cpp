#include "lockstep/train/warm_up.h"

#include <dlfcn.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

/// Sets OpenMP's threads alone: torch::set_num_threads() would start those of another pool at once.
void set_openmp_threads(int count) {
  using Set = void (*)(int);
  if (const auto set = reinterpret_cast<Set>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(count);
  }
}

}  // namespace

void warm_up() {
  namespace fn = torch::nn::functional;
  // A process with a second thread cannot be forked.
  const int threads = torch::get_num_threads();
  set_openmp_threads(1);
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
  set_openmp_threads(threads);
}

}  // namespace lockstep
