#include "lockstep/parallel/ddp_core.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

std::vector<NamedTensor> trainable(const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> list;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.requires_grad()) list.push_back(parameter);
  }
  if (list.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "data parallel training needs a module with at least one parameter that requires "
                "a gradient");
  }
  return list;
}

}  // namespace

void DdpOptions::validate() const {
  if (!(bucket_cap_mb > 0 && bucket_cap_mb <= 1 << 20)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("bucket_cap_mb is {}; it must be greater than 0, in MiB", bucket_cap_mb));
  }
}

DdpCore::DdpCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                 const DdpOptions& options)
    : module_(std::move(module)), parameters_(parameters_of(*module_)) {
  options.validate();
  const auto to_reduce = trainable(parameters_);
  if (group.size() == 1) return;
  auto buffers = buffers_of(*module_);
  std::vector<std::string> descriptions;
  for (const auto& parameter : parameters_) {
    const char* what = parameter.tensor.requires_grad() ? "parameter" : "frozen parameter";
    descriptions.push_back(describe(what, parameter));
  }
  for (const auto& buffer : buffers) descriptions.push_back(describe("buffer", buffer));
  check_same_on_all_ranks(group, descriptions);
  broadcast_values(group, parameters_);
  broadcast_values(group, buffers);
  const auto cap_bytes = static_cast<int64_t>(options.bucket_cap_mb * (1 << 20));
  reducer_ = std::make_unique<Reducer>(group, to_reduce, std::max<int64_t>(cap_bytes, 1));
  if (options.broadcast_buffers && !buffers.empty()) {
    buffers_ = std::make_unique<BufferBroadcast>(group, std::move(buffers));
  }
}

void DdpCore::before_forward() {
  if (!reducer_ || !c10::GradMode::is_enabled()) return;
  const bool synchronise = no_sync_depth_ == 0;
  reducer_->begin_forward(synchronise);
  if (buffers_ && synchronise && module_->is_training()) buffers_->run();
}

void DdpCore::after_forward() {
  if (reducer_ && c10::GradMode::is_enabled()) reducer_->end_forward();
}

std::vector<at::Tensor> DdpCore::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

void DdpCore::zero_grad() {
  for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

void DdpCore::train(bool on) {
  module_->train(on);
}

bool DdpCore::is_training() const {
  return module_->is_training();
}

double DdpCore::comm_exposed_ms() const {
  return reducer_ ? reducer_->comm_exposed_ms() : 0;
}

}  // namespace lockstep
