#include "lockstep/parallel/module_state.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/collectives.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/error.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/tensor/device/dtype.h"

namespace lockstep::inline internal {
namespace {

std::vector<NamedTensor> distinct(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  std::vector<NamedTensor> list;
  std::set<const void*> seen;
  for (const auto& item : tensors) {
    const at::Tensor& tensor = item.value();
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) {
      list.push_back({item.key(), tensor});
    }
  }
  return list;
}

/// Returns `text` of `root` on every rank.
std::string broadcast_text(ProcessGroup& group, std::string text, int root, CallSite site) {
  auto size = static_cast<int64_t>(text.size());
  group.broadcast(&size, 1, DType::kInt64, root, {}, site).wait();
  text.resize(static_cast<size_t>(size));
  if (size > 0) group.broadcast(text.data(), size, DType::kUint8, root, {}, site).wait();
  return text;
}

/// The first difference between this rank's descriptions and those of the group's rank 0, as a
/// sentence that quotes both. Nothing if they are equal.
std::optional<std::string> first_difference(const ProcessGroup& group,
                                            const std::vector<std::string>& here,
                                            const std::vector<std::string>& root) {
  if (here == root) return std::nullopt;
  const size_t common = std::min(here.size(), root.size());
  const auto place =
      std::mismatch(here.begin(), here.begin() + static_cast<ptrdiff_t>(common), root.begin());
  const auto at_place = [](const auto& list, auto it) {
    return it == list.end() ? std::string("nothing") : *it;
  };
  return fmt::format(
      "the ranks differ: rank {} has {} where rank {} has {} ({} and {} items in all)",
      group.world_rank(group.rank()), at_place(here, place.first), group.world_rank(0),
      at_place(root, place.second), here.size(), root.size());
}

}  // namespace

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module) {
  return distinct(module.named_parameters());
}

std::vector<NamedTensor> buffers_of(const torch::nn::Module& module) {
  return distinct(module.named_buffers());
}

std::string describe(const std::string& what, const NamedTensor& tensor) {
  const at::Tensor& value = tensor.tensor;
  return fmt::format("{} '{}' {} [{}] {}", what, tensor.name, c10::toString(value.scalar_type()),
                     fmt::join(value.sizes(), ", "),
                     value.layout() == at::kStrided
                         ? fmt::format("strides [{}]", fmt::join(value.strides(), ", "))
                         : "not dense");
}

void check_copyable(const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const bool dense = tensor.layout() == at::kStrided;
    if (dense && at::has_internal_overlap(tensor) != at::MemOverlap::Yes) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("tensor '{}' of the module {}", name,
                            dense ? "has elements that share memory, as after expand(), and cannot "
                                    "be made equal on all ranks: contiguous() it before "
                                    "register_buffer"
                                  : "is not dense, and only dense ones can be sent: register "
                                    "to_dense() of it, or keep it in a member that is no buffer"));
  }
}

void check_same_on_all_ranks(ProcessGroup& group, const std::vector<std::string>& descriptions,
                             CallSite site) {
  const std::string mine = fmt::format("{}", fmt::join(descriptions, "\n"));
  const auto root = split(broadcast_text(group, mine, 0, site), '\n');
  const auto difference = first_difference(group, split(mine, '\n'), root);
  // Every rank must learn of it, or the others would wait for a rank that has given up.
  int64_t complaining = difference ? group.rank() : group.size();
  group.all_reduce(&complaining, 1, DType::kInt64, ReduceOp::kMin, {}, site).wait();
  if (complaining == group.size()) return;
  throw Error(ErrorCode::kMismatch,
              broadcast_text(group, difference.value_or(""), static_cast<int>(complaining), site));
}

std::string name_list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > 8) text += fmt::format(" and {} more", names.size() - 8);
  return text;
}

void refuse_sparse_gradient(const NamedTensor& parameter) {
  const at::Tensor& grad = parameter.tensor.grad();
  if (!grad.defined() || grad.layout() == at::kStrided) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("parameter '{}' got a sparse gradient; only dense ones can be averaged",
                          parameter.name));
}

void throw_without_gradient(const std::vector<std::string>& names, bool virtual_ranks) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no gradient came for {} in this backward pass: every parameter must "
                          "take part in the loss, {}turn requires_grad off for them before the "
                          "data parallel model is made",
                          name_list(names),
                          virtual_ranks ? "of every virtual rank; "
                                        : "on every rank; set find_unused_parameters, or "));
}

void refuse_gradient_with_graph(const NamedTensor& parameter) {
  const at::Tensor& grad = parameter.tensor.grad();
  if (!grad.defined() || !grad.requires_grad()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("parameter '{}' got a gradient with a graph: create_graph is not "
                          "supported by the average. Call torch::autograd::grad() with it, and "
                          "backward() of the whole loss without",
                          parameter.name));
}

void broadcast_values(ProcessGroup& group, const std::vector<NamedTensor>& tensors, int root) {
  check_copyable(tensors);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& named : tensors) {
    const at::Tensor value = named.tensor.detach();
    if (value.numel() == 0) continue;
    const at::Tensor flat = value.contiguous();  // `value` itself if it is contiguous
    const at::Tensor bytes = flat.view(-1).view(at::kByte);
    broadcast(group, bytes, root).wait();
    if (!flat.is_same(value)) value.copy_(flat);
  }
}

BufferBroadcast::BufferBroadcast(ProcessGroup group, std::vector<NamedTensor> buffers)
    : group_(std::move(group)), buffers_(std::move(buffers)) {
  std::vector<GradientSpec> specs;
  std::vector<int> all;
  for (const NamedTensor& buffer : buffers_) {
    all.push_back(static_cast<int>(specs.size()));
    specs.push_back({buffer.tensor.numel(), buffer.tensor.element_size(), 0});
  }
  const BucketLayout layout =
      lay_out_buckets(specs, {all}, std::numeric_limits<int64_t>::max()).front();
  memory_ = group_.allocate(std::max<int64_t>(layout.end, kGradientAlignment));
  for (size_t i = 0; i < buffers_.size(); ++i) {
    places_.push_back(from_shared(memory_, layout.offsets[i], buffers_[i].tensor.sizes(),
                                  buffers_[i].tensor.scalar_type()));
  }
}

void BufferBroadcast::run(int root) {
  const at::NoGradGuard no_grad;
  const bool sender = group_.rank() == root;
  for (size_t i = 0; sender && i < places_.size(); ++i) places_[i].copy_(buffers_[i].tensor);
  group_.broadcast(memory_->data(), memory_->bytes(), DType::kUint8, root).wait();
  // variable_data() leaves the version counter unchanged: a graph of an earlier forward that saved
  // a running average must stay usable, as on rank 0. Its backward does not read the value.
  for (size_t i = 0; !sender && i < places_.size(); ++i) {
    buffers_[i].tensor.variable_data().copy_(places_[i]);
  }
}

BufferAverage::BufferAverage(ProcessGroup group, const VirtualRankRange& range,
                             const std::vector<NamedTensor>& buffers)
    : group_(std::move(group)), virtual_ranks_(range.total) {
  std::vector<NamedTensor> others;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].tensor.is_floating_point()) {
      others.push_back(buffers[i]);
      continue;
    }
    averaged_.push_back(buffers[i]);
    index_of_.push_back(i);
  }
  if (!others.empty()) others_ = std::make_unique<BufferBroadcast>(group_, std::move(others));
  if (averaged_.empty()) return;
  lay_out(averaged_);
  const int64_t bytes = std::max(layouts_.back().end, kGradientAlignment);
  memory_ = group_.allocate(bytes);
  if (!ranks_add_as_tree(range.total, group_.size())) {
    reduction_ = std::make_unique<SubtreeReduction>(group_, range, bytes);
  }
  const size_t subtrees = owned_subtrees(range).size();
  for (size_t k = 0; k + 1 < subtrees; ++k) earlier_.push_back(at::zeros({bytes}, at::kByte));
  places_.resize(subtrees);
  for (size_t subtree = 0; subtree < subtrees; ++subtree) {
    places_[subtree].resize(averaged_.size());
    for (const BucketLayout& layout : layouts_) {
      for (size_t k = 0; k < layout.packed.size(); ++k) {
        const auto i = static_cast<size_t>(layout.packed[k]);
        const at::Tensor& like = averaged_[i].tensor;
        places_[subtree][i] = at::from_blob(memory_of(subtree) + layout.offsets[k], like.sizes(),
                                            at::TensorOptions().dtype(like.scalar_type()));
      }
    }
  }
}

void BufferAverage::lay_out(const std::vector<NamedTensor>& buffers) {
  std::vector<GradientSpec> specs;
  for (const NamedTensor& buffer : buffers) {
    const DType type = to_dtype(buffer.tensor.scalar_type());
    specs.push_back({buffer.tensor.numel(), size_of(type), static_cast<int>(type)});
  }
  constexpr auto kAny = std::numeric_limits<int64_t>::max();
  const auto order = reversed_order(static_cast<int>(specs.size()));
  layouts_ = lay_out_buckets(specs, plan_buckets(specs, order, std::array{kAny}), kAny);
  for (const BucketLayout& layout : layouts_) {
    types_.push_back(static_cast<DType>(specs[static_cast<size_t>(layout.packed.front())].kind));
  }
}

/// The sum over all ranks is made in the last subtree's memory.
char* BufferAverage::memory_of(size_t subtree) const {
  return static_cast<char*>(subtree < earlier_.size() ? earlier_[subtree].data_ptr()
                                                      : memory_->data());
}

void BufferAverage::run(std::span<const std::span<const at::Tensor>> sums) {
  const at::NoGradGuard no_grad;
  if (others_) others_->run();
  for (size_t subtree = 0; subtree < places_.size(); ++subtree) {
    for (size_t i = 0; i < averaged_.size(); ++i) {
      places_[subtree][i].copy_(sums[subtree][index_of_[i]]);
    }
  }
  for (size_t k = 0; k < layouts_.size(); ++k) sum(k);
  for (size_t i = 0; i < averaged_.size(); ++i) {
    averaged_[i].tensor.variable_data().copy_(places_.back()[i]);
  }
}

void BufferAverage::sum(size_t layout) {
  const BucketLayout& bytes = layouts_[layout];
  const DType type = types_[layout];
  char* const data = memory_of(earlier_.size()) + bytes.begin;
  const int64_t count = (bytes.end - bytes.begin) / size_of(type);
  if (reduction_) {
    std::vector<const void*> values;
    for (size_t subtree = 0; subtree < places_.size(); ++subtree) {
      values.push_back(memory_of(subtree) + bytes.begin);
    }
    reduction_->start(values, data, count, type)();
  } else {
    group_.all_reduce(data, count, type, ReduceOp::kSum).wait();
  }
  divide(data, count, type, virtual_ranks_);
}

}  // namespace lockstep::inline internal
