#include "lockstep/train/task/teacher.h"

#include <ATen/core/grad_mode.h>

#include "lockstep/base/hash.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"

namespace lockstep {
namespace {

/// Its statistics decide about its outputs, too. Counts of batches do not, and some formats lack
/// them.
uint64_t digest_with_buffers(const torch::nn::Module& module) {
  Hash hash;
  for (const auto& [name, tensor] : module_tensors(module)) {
    if (name.ends_with("num_batches_tracked")) continue;
    const auto values = tensor.detach().contiguous();
    hash.update(name.data(), name.size());
    hash.update(values.data_ptr(), values.nbytes());
  }
  return first_64_bits(hash.hex());
}

}  // namespace

Teacher::Teacher(const ModelConfig& config) : model_(make_model(without_pretrained(config), 0)) {
  load_weights(weights_in(require_weights(config.pretrained), /*averaged=*/true), *model_);
  model_->eval();
  for (auto& parameter : model_->parameters()) parameter.set_requires_grad(false);
  digest_ = digest_with_buffers(*model_);
}

at::Tensor Teacher::operator()(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_grad;
  const at::Device device = inputs.front().device();
  if (model_->device() != device) model_->to(device);
  return model_->compute(inputs).front();
}

}  // namespace lockstep
