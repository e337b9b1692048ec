#include "lockstep/train/last_batch.h"

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>

namespace lockstep::inline internal {
namespace {

constexpr char kWayOut[] = "train.loader.drop_remainder: True leaves it out";

bool is_batch_norm(const torch::nn::Module& layer) {
  return layer.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         layer.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         layer.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

}  // namespace

bool has_batch_norm(const torch::nn::Module& module) {
  for (const auto& layer : module.modules()) {
    if (is_batch_norm(*layer)) return true;
  }
  return false;
}

std::string last_batch_note(const LoaderConfig& loader, int64_t samples_a_virtual_rank) {
  const int64_t size = loader.batch_size;
  if (loader.drop_remainder || size == 1 || samples_a_virtual_rank % size != 1) return "";
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
