#pragma once
// Synchronised batch norm takes mean and variance of all ranks' batches together.
//
// Use:
//   torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::BatchNorm1d(16));
//   const int layers = lockstep::convert_sync_batchnorm(*net, group);  // 1
//   auto model = lockstep::DistributedDataParallel(net, group);
//   loss_of(model.forward(images), labels).backward();
//   lockstep::SyncBatchNorm layer(16, *group.split(0));  // or a layer of a new net
//
// Threads: one at a time runs the layers of a group, because they wait for its collectives. A
// device's backward has its own thread.
// Cost: in training, two small collectives per layer and step; see sync_batch_norm(). In
// evaluation, and in a group of one, that of plain batch norm.
// Errors: kInvalidArgument, as below; those of the group.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>  // before torch/nn: clang wants IValue complete there
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "lockstep/process_group.h"

namespace lockstep {

/// Training batch norm over the joined batch of all ranks, differentiable.
///
/// input: (N, C, ...), N may differ between ranks and be 0; weight, bias, running_mean,
/// running_var: (C) or undefined. A 16-bit input is computed in float32, and the result rounded.
/// The running statistics become running * (1 - momentum) + batch * momentum, with the unbiased
/// variance, the same bits on every rank. Returns the rank's part of the result.
///
/// The gradient of `input` is that of the joined batch. Gradients of weight and bias are the rank's
/// own parts; DistributedDataParallel averages them as any gradient.
///
/// Collective, as is its backward, also on a rank with an empty batch (its loss must reach the
/// result, as result.sum() does). Cost: one all_gather of 2C + 1 and one all_reduce of 2C doubles.
/// Give it a group of its own (group.subgroup() of all ranks), or it waits for the gradients under
/// way. Statistics are merged in rank order in float64.
/// Errors: kInvalidArgument on every rank if all together have fewer than 2 values per channel, and
/// for a backward() with create_graph; those of the group.
/// Source: Chan, Golub & LeVeque, "Algorithms for computing the sample variance", 1983.
at::Tensor sync_batch_norm(const ProcessGroup& group, const at::Tensor& input,
                           const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& running_mean, const at::Tensor& running_var,
                           double momentum, double eps);

/// torch::nn::BatchNorm1d, 2d and 3d over all ranks of a group: SyncBatchNorm(num_features, group)
/// or SyncBatchNorm(options, group). Parameters, buffers, names and evaluation are the same, and
/// evaluation is not collective. In a group of one it is plain batch norm.
class SyncBatchNormImpl final
    : public torch::nn::NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& norm_options, ProcessGroup group)
      : NormImplBase(norm_options), group_(std::move(group)) {}

  /// (N, C, ...) -> the same. Errors: kInvalidArgument for another shape; those of
  /// sync_batch_norm().
  at::Tensor forward(const at::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const at::Tensor& input) override;

 private:
  ProcessGroup group_;
};
TORCH_MODULE(SyncBatchNorm);

/// Makes every batch norm layer in `module` (BatchNorm1d, 2d, 3d, of any depth) take its statistics
/// from all ranks of `group` in training. The layers keep their place, type, parameters, names and
/// options, so this works for any module, however it stores them. Collective. Returns the number of
/// layers; with 0 nothing has changed. The layers share a separate group, which ends with the last
/// of them.
///
/// How: an override of libtorch's aten::batch_norm recognises these layers by their running mean
/// (without one, by their weight). So copies (clone()) and later layers are not converted; a move
/// of the module to another type or device keeps the conversion. A layer still refuses, as
/// libtorch's do, a batch of exactly one value per channel on a rank; SyncBatchNorm does not.
/// Excludes DistributedDataParallel::join().
/// Errors: kInvalidArgument for a layer with neither statistics nor weight, naming it, or on
/// another device than the CPU, CUDA and PrivateUse1.
int convert_sync_batchnorm(torch::nn::Module& module, const ProcessGroup& group);

}  // namespace lockstep
