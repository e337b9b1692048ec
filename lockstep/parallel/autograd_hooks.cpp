#include "lockstep/parallel/autograd_hooks.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace lockstep::inline internal {
namespace {

/// Does nothing; a tensor's hooks are destroyed with it.
struct Keeper : torch::autograd::FunctionPreHook {
  explicit Keeper(std::shared_ptr<void> kept) : what(std::move(kept)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    return grads;
  }
  std::shared_ptr<void> what;
};

}  // namespace

struct GradientHook::Hung {
  decltype(torch::autograd::impl::grad_accumulator(at::Tensor())) accumulator;
  uintptr_t key = 0;
};

GradientHook::GradientHook(const at::Tensor& leaf, std::function<void(const at::Tensor&)> hook)
    : hung_(std::make_unique<Hung>()) {
  using torch::autograd::variable_list;
  hung_->accumulator = torch::autograd::impl::grad_accumulator(leaf);
  hung_->key =
      hung_->accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [hook = std::move(hook)](const variable_list& outputs, const variable_list& inputs) {
            hook(inputs.at(0));
            return outputs;
          }));
}

GradientHook::GradientHook(GradientHook&& other) noexcept = default;

GradientHook::~GradientHook() {
  if (hung_) hung_->accumulator->del_post_hook(hung_->key);
}

bool at_begin_of_backward(const at::Tensor& output, std::function<void()> begun) {
  // A leaf lives on to the next forward: hooks on it would accumulate.
  if (!output.defined() || !output.requires_grad() || output.is_leaf()) return false;
  output.register_hook([begun = std::move(begun)](const at::Tensor&) { begun(); });
  return true;
}

void keep_with(const at::Tensor& tensor, std::shared_ptr<void> what) {
  torch::autograd::impl::add_hook(tensor, std::make_unique<Keeper>(std::move(what)));
}

void at_end_of_backward(std::function<void()> done) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(done));
}

}  // namespace lockstep::inline internal
