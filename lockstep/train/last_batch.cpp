#include "lockstep/train/last_batch.h"

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>

namespace lockstep::inline internal {
namespace {

constexpr char kWayOut[] = "train.loader.drop_remainder: True leaves it out";

bool is_batch_norm(const torch::nn::Module& layer) {
  return layer.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         layer.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         layer.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

bool has_batch_norm(const torch::nn::Module& model) {
  const auto layers = model.modules();
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return is_batch_norm(*layer); });
}

}  // namespace

std::string last_batch_note(const Config& config, const torch::nn::Module& model,
                            int64_t samples_a_virtual_rank, int num_ranks) {
  const auto& loader = config.train.loader;
  const int64_t size = loader.batch_size;
  if (loader.drop_remainder || size == 1 || samples_a_virtual_rank % size != 1) return "";
  if ((config.parallel.sync_bn && num_ranks > 1) || !has_batch_norm(model)) return "";
  return fmt::format(
      "the last batch of each epoch has one sample ({} are dealt in batches of {}): BatchNorm "
      "fails in a layer with one value per channel; {}",
      samples_a_virtual_rank, size, kWayOut);
}

void explain(const c10::Error& error, int64_t samples_in_batch) {
  const std::string cause = error.what_without_backtrace();
  if (samples_in_batch != 1 || !cause.starts_with("Expected more than 1 value per channel")) throw;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the batch has one sample, the last one of the epoch: {}; {}", cause, kWayOut));
}

}  // namespace lockstep::inline internal
