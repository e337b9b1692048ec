#include "lockstep/sync_batch_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/error.h"
#include "lockstep/parallel/autograd_hooks.h"
#include "lockstep/parallel/sync_batch_norm_layers.h"

namespace lockstep {
namespace {

/// The ranks over which layers compute their statistics.
struct Ranks {
  ProcessGroup group;
  std::shared_ptr<CollectiveTime> time;  ///< Of their collectives; null: not measured.

  /// Runs `call`, a collective, to its end.
  template <class Call>
  void run(const Call& call) const {
    const auto begin = std::chrono::steady_clock::now();
    call().wait();
    if (time) time->add(std::chrono::steady_clock::now() - begin);
  }
};

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Moments of a batch, per channel. Legend: C channels.
struct Moments {
  double count = 0;          ///< Values per channel.
  std::vector<double> mean;  ///< (C)
  std::vector<double> m2;    ///< (C): sum of squared distances from the mean.
};

std::vector<double> to_doubles(const Tensor& vector) {
  const Tensor doubles = vector.to(at::kCPU, at::kDouble).contiguous();
  const auto* begin = doubles.data_ptr<double>();
  return {begin, begin + doubles.numel()};
}

Tensor to_tensor(std::vector<double> values, const Tensor& like) {
  return at::from_blob(values.data(), {std::ssize(values)}, at::kDouble)
      .to(like.options().requires_grad(false), /*non_blocking=*/false, /*copy=*/true);
}

Moments moments_of(const Tensor& input) {
  const auto channels = static_cast<size_t>(input.size(1));
  Moments moments{0, std::vector<double>(channels), std::vector<double>(channels)};
  if (input.numel() == 0) return moments;
  moments.count = static_cast<double>(input.numel() / input.size(1));
  std::vector<int64_t> dims(static_cast<size_t>(input.dim() - 1));
  std::iota(dims.begin(), dims.end(), 1);
  dims[0] = 0;
  const auto [var, mean] = at::var_mean(input, dims, /*unbiased=*/false);
  moments.mean = to_doubles(mean);
  moments.m2 = to_doubles(var);
  for (double& value : moments.m2) value *= moments.count;
  return moments;
}

/// Adds `other` to `sum`.
void merge(Moments& sum, const Moments& other) {
  if (other.count == 0) return;
  const double count = sum.count + other.count;
  for (size_t c = 0; c < sum.mean.size(); ++c) {
    const double delta = other.mean[c] - sum.mean[c];
    sum.m2[c] += other.m2[c] + delta * delta * sum.count * other.count / count;
    sum.mean[c] += delta * other.count / count;
  }
  sum.count = count;
}

/// The moments of the joined batch, on every rank.
Moments gather_moments(Ranks& ranks, const Moments& own) {
  ProcessGroup& group = ranks.group;
  const size_t channels = own.mean.size();
  const size_t width = 2 * channels + 1;
  std::vector<double> row = own.mean;
  row.insert(row.end(), own.m2.begin(), own.m2.end());
  row.push_back(own.count);
  std::vector<double> rows(width * static_cast<size_t>(group.size()));
  ranks.run(
      [&] { return group.all_gather(row.data(), rows.data(), std::ssize(row), DType::kFloat64); });
  Moments all{0, std::vector<double>(channels), std::vector<double>(channels)};
  for (auto at = rows.begin(); at != rows.end(); at += static_cast<ptrdiff_t>(width)) {
    const auto split = at + static_cast<ptrdiff_t>(channels);
    const auto end = split + static_cast<ptrdiff_t>(channels);
    merge(all, {*end, {at, split}, {split, end}});
  }
  return all;
}

Moments joined_moments(Ranks& ranks, const Tensor& input) {
  Moments all = gather_moments(ranks, moments_of(input));
  if (all.count >= 2) return all;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("synchronised batch norm needs at least 2 values per channel on all {} "
                          "ranks together in training, but got {}",
                          ranks.group.size(), all.count));
}

void update_running(const Tensor& running_mean, const Tensor& running_var, const Moments& batch,
                    double momentum) {
  const auto move = [&](const Tensor& running, std::vector<double> target) {
    if (running.defined()) {
      running.mul_(1 - momentum).add_(to_tensor(std::move(target), running), momentum);
    }
  };
  std::vector<double> unbiased = batch.m2;
  for (double& value : unbiased) value /= batch.count - 1;
  move(running_mean, batch.mean);
  move(running_var, std::move(unbiased));
}

/// (C) -> (1, C, 1, ...), to broadcast with `input`.
Tensor as_channels(const Tensor& vector, const Tensor& input) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = vector.numel();
  return vector.view(shape);
}

struct RanksHolder : torch::CustomClassHolder {
  explicit RanksHolder(Ranks held) : ranks(std::move(held)) {}
  Ranks ranks;
};

/// Autograd takes an undefined tensor as an optional only.
using GivenTensor = c10::optional<Tensor>;

GivenTensor given(const Tensor& tensor) {
  return tensor.defined() ? GivenTensor(tensor) : c10::nullopt;
}

struct SyncBatchNormFunction : torch::autograd::Function<SyncBatchNormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input,
                        const GivenTensor& given_weight, const GivenTensor& given_bias,
                        const GivenTensor& running_mean, const GivenTensor& running_var,
                        double momentum, double eps, Ranks ranks) {
    const Tensor weight = given_weight.value_or(Tensor()), bias = given_bias.value_or(Tensor());
    const Moments batch = joined_moments(ranks, input);
    update_running(running_mean.value_or(Tensor()), running_var.value_or(Tensor()), batch,
                   momentum);
    std::vector<double> var = batch.m2;
    for (double& value : var) value /= batch.count;
    const Tensor like = weight.defined() ? weight : input;
    const Tensor mean = to_tensor(batch.mean, like);
    const Tensor variance = to_tensor(std::move(var), like);
    const Tensor invstd = (variance + eps).rsqrt();
    context->save_for_backward({input, weight, mean, invstd});
    context->saved_data["count"] = batch.count;
    context->saved_data["eps"] = eps;
    context->saved_data["ranks"] =
        c10::IValue::make_capsule(c10::make_intrusive<RanksHolder>(std::move(ranks)));
    if (input.numel() == 0) return at::empty_like(input);
    // The same computation as in evaluation with given statistics.
    return std::get<0>(
        at::native_batch_norm(input, weight, bias, mean, variance, /*training=*/false, 0, eps));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (c10::GradMode::is_enabled()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "synchronised batch norm has no second derivative; call backward() without "
                  "create_graph");
    }
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &invstd = saved[3];
    const Tensor grad = grads[0].contiguous(input.suggest_memory_format());
    // This rank's sums per channel: of grad * (input - mean) * invstd and of grad.
    Tensor grad_weight = at::zeros_like(mean), grad_bias = at::zeros_like(mean);
    if (input.numel() > 0) {
      std::tie(std::ignore, grad_weight, grad_bias) = at::native_batch_norm_backward(
          grad, input, weight, {}, {}, mean, invstd, /*train=*/true,
          context->saved_data["eps"].toDouble(), {false, true, true});
    }
    auto sums = to_doubles(at::cat({grad_weight, grad_bias}));
    auto capsule = context->saved_data["ranks"].toCapsule();
    auto& ranks = static_cast<RanksHolder&>(*capsule).ranks;
    ranks.run([&] {
      return ranks.group.all_reduce(sums.data(), std::ssize(sums), DType::kFloat64, ReduceOp::kSum);
    });
    const Tensor all = to_tensor(std::move(sums), mean) / context->saved_data["count"].toDouble();
    const auto halves = all.chunk(2);
    const auto channels = [&](const Tensor& vector) { return as_channels(vector, input); };
    // invstd * weight * (grad - sum_bias / count - (input - mean) * invstd * sum_weight / count)
    const Tensor scale = weight.defined() ? invstd * weight.detach() : invstd;
    Tensor grad_input = (input - channels(mean)).mul_(channels(invstd * halves[0]));
    grad_input = grad_input.add_(channels(halves[1])).neg_().add_(grad).mul_(channels(scale));
    const bool affine = weight.defined();
    return {grad_input,
            affine ? grad_weight : Tensor(),
            affine ? grad_bias : Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

/// A batch norm layer that can be converted.
struct NormLayer {
  Tensor key;  ///< It identifies the layer.
  std::weak_ptr<const torch::nn::Module> module;
};

/// The layers converted by convert_sync_batchnorm(), by the tensor that identifies them. That
/// tensor keeps the group, which so ends with the last of its layers.
class ConvertedLayers {
 public:
  void add(const NormLayer& layer, const std::shared_ptr<Ranks>& ranks) {
    const Tensor& key = layer.key;
    keep_with(key, ranks);
    const MutexLock lock(mutex_);
    std::erase_if(layers_, [](const auto& item) { return item.second.key.expired(); });
    layers_.insert_or_assign(key.unsafeGetTensorImpl(),
                             Layer{WeakKey(key.getIntrusivePtr()), layer.module, ranks});
  }
  /// Null for a layer that is not converted, or is in evaluation. Without running statistics it
  /// takes those of the batch there, too, but on this rank alone.
  std::shared_ptr<Ranks> find(const Tensor& key) {
    const MutexLock lock(mutex_);
    const auto found = layers_.find(key.unsafeGetTensorImpl());
    if (found == layers_.end()) return nullptr;
    const auto module = found->second.module.lock();
    return module && !module->is_training() ? nullptr : found->second.ranks.lock();
  }

 private:
  using WeakKey = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Layer {
    // Weak: while it exists, no new tensor can have the address, and no tensor is kept alive.
    WeakKey key;
    std::weak_ptr<const torch::nn::Module> module;  ///< Null for one that no pointer shares.
    std::weak_ptr<Ranks> ranks;
  };
  Mutex mutex_;
  std::map<const c10::TensorImpl*, Layer> layers_ LOCKSTEP_GUARDED_BY(mutex_);
};

ConvertedLayers& converted_layers() {
  static ConvertedLayers layers;
  return layers;
}

Tensor norm_over(const Ranks& ranks, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var, double momentum,
                 double eps) {
  if (input.element_size() > 2) {
    return SyncBatchNormFunction::apply(input, given(weight), given(bias), given(running_mean),
                                        given(running_var), momentum, eps, ranks);
  }
  const auto widened = [](const Tensor& tensor) {
    return given(tensor.defined() ? tensor.to(at::kFloat) : tensor);
  };
  return SyncBatchNormFunction::apply(input.to(at::kFloat), widened(weight), widened(bias),
                                      given(running_mean), given(running_var), momentum, eps, ranks)
      .to(input.scalar_type());
}

/// Overrides libtorch's aten::batch_norm.
Tensor batch_norm(const Tensor& input, const c10::optional<Tensor>& weight,
                  const c10::optional<Tensor>& bias, const c10::optional<Tensor>& running_mean,
                  const c10::optional<Tensor>& running_var, bool training, double momentum,
                  double eps, bool cudnn_enabled) {
  const auto value = [](const c10::optional<Tensor>& tensor) { return tensor.value_or(Tensor()); };
  const Tensor key = value(running_mean).defined() ? value(running_mean) : value(weight);
  const auto ranks = training && key.defined() ? converted_layers().find(key) : nullptr;
  if (ranks) {
    return norm_over(*ranks, input, value(weight), value(bias), value(running_mean),
                     value(running_var), momentum, eps);
  }
  return at::native::batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                                eps, cudnn_enabled);
}

void stand_before_batch_norm() {
  using Key = c10::DispatchKey;
  static std::list<torch::Library> libraries;
  static const bool once = [] {
    for (const Key key : {Key::AutogradCPU, Key::AutogradCUDA, Key::AutogradPrivateUse1}) {
      libraries.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      libraries.back().impl("batch_norm", &batch_norm);
    }
    return true;
  }();
  (void)once;
}

/// Devices on which batch_norm() above is registered: on others a layer would silently use its own
/// batch only.
bool stands_on(const c10::Device& device) {
  return device.is_cpu() || device.is_cuda() || device.type() == c10::DeviceType::PrivateUse1;
}

/// The tensor that identifies a batch norm layer, undefined if it has none; nothing for another
/// module.
std::optional<Tensor> key_of(torch::nn::Module& module) {
  const auto key = [](const auto* layer) -> std::optional<Tensor> {
    if (!layer) return std::nullopt;
    return layer->running_mean.defined() ? layer->running_mean : layer->weight;
  };
  if (auto found = key(module.as<torch::nn::BatchNorm1d>())) return found;
  if (auto found = key(module.as<torch::nn::BatchNorm2d>())) return found;
  return key(module.as<torch::nn::BatchNorm3d>());
}

/// Nothing for another module. Errors: kInvalidArgument for a layer that cannot be converted.
std::optional<NormLayer> checked_layer(const std::string& name, torch::nn::Module& module) {
  auto key = key_of(module);
  if (!key) return std::nullopt;
  if (key->defined() && stands_on(key->device())) return NormLayer{*key, module.weak_from_this()};
  const std::string why = key->defined()
                              ? "is on " + key->device().str()
                              : "has neither running statistics nor a weight to identify it";
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("batch norm layer '{}' {}; use SyncBatchNorm in its place", name, why));
}

}  // namespace

Tensor sync_batch_norm(const ProcessGroup& group, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                       double momentum, double eps) {
  return norm_over({group, nullptr}, input, weight, bias, running_mean, running_var, momentum, eps);
}

Tensor SyncBatchNormImpl::forward(const Tensor& input) {
  _check_input_dim(input);
  double factor = options.momentum().value_or(0);
  if (is_training() && options.track_running_stats()) {
    num_batches_tracked += 1;
    if (!options.momentum()) factor = 1.0 / num_batches_tracked.item<double>();
  }
  const bool batch_statistics = is_training() || !options.track_running_stats();
  if (is_training() && group_.size() > 1) {
    return sync_batch_norm(group_, input, weight, bias, running_mean, running_var, factor,
                           options.eps());
  }
  return at::batch_norm(input, weight, bias, running_mean, running_var, batch_statistics, factor,
                        options.eps(), /*cudnn_enabled=*/false);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << fmt::format("lockstep::SyncBatchNorm({}, eps={}, ranks={})", options.num_features(),
                        options.eps(), group_.size());
}

void SyncBatchNormImpl::_check_input_dim(const Tensor& input) {
  if (input.dim() >= 2 && input.size(1) == options.num_features()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("SyncBatchNorm takes (N, {}, ...), not {} dimensions{}",
                          options.num_features(), input.dim(),
                          input.dim() < 2 ? "" : fmt::format(" with {} channels", input.size(1))));
}

bool internal::has_sync_batchnorm(torch::nn::Module& module) {
  const auto is_one = [](torch::nn::Module& layer) {
    if (!layer.is_training()) return false;
    if (layer.as<SyncBatchNormImpl>() != nullptr) return true;
    const auto key = key_of(layer);
    return key && converted_layers().find(*key) != nullptr;
  };
  if (is_one(module)) return true;
  const auto children = module.modules(/*include_self=*/false);
  return std::any_of(children.begin(), children.end(),
                     [&](const auto& child) { return is_one(*child); });
}

int internal::convert_sync_batchnorm(torch::nn::Module& module, const ProcessGroup& group,
                                     std::shared_ptr<CollectiveTime> time) {
  std::vector<NormLayer> layers;
  if (auto layer = checked_layer("", module)) layers.push_back(*layer);
  for (const auto& child : module.named_modules("", /*include_self=*/false)) {
    if (auto layer = checked_layer(child.key(), *child.value())) layers.push_back(*layer);
  }
  if (layers.empty() || group.size() == 1) return static_cast<int>(layers.size());
  std::vector<int> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto own = std::make_shared<Ranks>(Ranks{group.subgroup(ranks), std::move(time)});
  stand_before_batch_norm();
  for (const NormLayer& layer : layers) converted_layers().add(layer, own);
  return static_cast<int>(layers.size());
}

int convert_sync_batchnorm(torch::nn::Module& module, const ProcessGroup& group) {
  return convert_sync_batchnorm(module, group, nullptr);
}

}  // namespace lockstep
