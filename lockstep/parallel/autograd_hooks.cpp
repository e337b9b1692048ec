#include "lockstep/parallel/autograd_hooks.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace lockstep {

GradientHook::GradientHook(const at::Tensor& leaf, std::function<void(const at::Tensor&)> hook)
    : accumulator_(torch::autograd::impl::grad_accumulator(leaf)) {
  using torch::autograd::variable_list;
  key_ = accumulator_->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [hook = std::move(hook)](const variable_list& outputs, const variable_list& inputs) {
        hook(inputs.at(0));
        return outputs;
      }));
}

GradientHook::GradientHook(GradientHook&& other) noexcept
    : accumulator_(std::move(other.accumulator_)), key_(other.key_) {}

GradientHook::~GradientHook() {
  if (accumulator_) accumulator_->del_post_hook(key_);
}

void at_begin_of_backward(const at::Tensor& output, std::function<void()> begun) {
  if (!output.defined() || !output.requires_grad()) return;
  output.register_hook([begun = std::move(begun)](const at::Tensor&) { begun(); });
}

void at_end_of_backward(std::function<void()> done) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(done));
}

}  // namespace lockstep
