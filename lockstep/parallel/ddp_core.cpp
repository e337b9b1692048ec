#include "lockstep/parallel/ddp_core.h"

#include <ATen/Parallel.h>
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
  if (shards < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("shards is {}; it must be 0 (one a rank) or more", shards));
  }
  if (shards > 0 && !broadcast_buffers) {
    throw Error(ErrorCode::kInvalidArgument,
                "broadcast_buffers is false: with shards, buffers are always averaged over them");
  }
}

DdpCore::DdpCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                 const DdpOptions& options)
    : module_(std::move(module)), parameters_(parameters_of(*module_)) {
  options.validate();
  const auto to_reduce = trainable(parameters_);
  const bool sharded = options.shards > 0;
  range_ = shards_of_rank(sharded ? options.shards : group.size(), group.rank(), group.size());
  auto buffers = buffers_of(*module_);
  if (group.size() > 1) make_equal(group, options, buffers);
  if (sharded) fold_ = std::make_unique<ShardFold>(group, range_, to_reduce, buffers);
  if (group.size() == 1) return;
  const auto cap_bytes = static_cast<int64_t>(options.bucket_cap_mb * (1 << 20));
  reducer_ =
      std::make_unique<Reducer>(group, to_reduce, std::max<int64_t>(cap_bytes, 1), fold_.get());
  if (options.broadcast_buffers && !sharded && !buffers.empty()) {
    buffers_ = std::make_unique<BufferBroadcast>(group, std::move(buffers));
  }
}

void DdpCore::make_equal(ProcessGroup& group, const DdpOptions& options,
                         const std::vector<NamedTensor>& buffers) const {
  std::vector<std::string> descriptions;
  if (options.shards > 0) {
    descriptions.push_back(
        fmt::format("{} shards, intra-op threads {}", options.shards, at::get_num_threads()));
  }
  for (const auto& parameter : parameters_) {
    const char* what = parameter.tensor.requires_grad() ? "parameter" : "frozen parameter";
    descriptions.push_back(describe(what, parameter));
  }
  for (const auto& buffer : buffers) descriptions.push_back(describe("buffer", buffer));
  check_same_on_all_ranks(group, descriptions);
  broadcast_values(group, parameters_);
  broadcast_values(group, buffers);
}

/// Whether the next backward is averaged over the ranks.
bool DdpCore::synchronises() const {
  return no_sync_depth_ == 0 && (!fold_ || *shard_ + 1 == range_.count);
}

void DdpCore::before_forward() {
  if (!c10::GradMode::is_enabled()) return;
  if (fold_ && !shard_) {
    throw Error(ErrorCode::kInvalidArgument,
                "forward() of a data parallel model with shards belongs into for_each_shard()");
  }
  if (!reducer_) return;
  reducer_->begin_forward(synchronises());
  if (buffers_ && synchronises() && module_->is_training()) buffers_->run();
}

void DdpCore::after_forward() {
  if (!reducer_ || !c10::GradMode::is_enabled()) return;
  // Gradients that are put aside would hold the memory that the last shard's need.
  if (!fold_ || synchronises()) reducer_->end_forward();
}

void DdpCore::enter_shard(int index) {
  shard_ = index;
  if (fold_) fold_->enter(index);
}

void DdpCore::leave_shard() {
  if (fold_ && no_sync_depth_ > 0) {
    fold_->keep(*shard_);
  } else if (fold_ && synchronises()) {
    fold_->finish(!reducer_, module_->is_training());
  } else if (fold_) {
    fold_->add(*shard_);
  }
  shard_.reset();
}

std::vector<at::Tensor> DdpCore::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

void DdpCore::zero_grad() {
  if (fold_) fold_->reset();
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
