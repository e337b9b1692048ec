#include "lockstep/train/evaluate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>

#include "lockstep/amp/autocast.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/shards.h"

namespace lockstep {
namespace {

/// A task's sums, and behind them the number of faults.
using Sums = std::vector<double>;

/// Those of one shard; nothing when interrupted.
std::optional<Sums> sum_over_batches(Model& model, BatchSource& loader, Task& task, AmpLevel level,
                                     const EvalHooks& hooks,
                                     const std::function<void(int64_t)>& judged) {
  Sums sums(task.num_sums() + 1);
  const at::Device device = model.device();
  for (int64_t taken = 0; !hooks.interrupted(); ++taken) {
    if (hooks.max_batches > 0 && taken == hooks.max_batches) return sums;
    const auto batch = loader.next();
    if (!batch) return sums;
    for (const auto& line : batch->faults) hooks.fault(line);
    sums.back() += static_cast<double>(batch->faults.size());
    if (batch->images.size(0) > 0) {
      const auto output =
          forward_at(level, batch->images.to(device),
                     [&](const at::Tensor& images) { return model.forward(images); });
      const auto part = task.sums(output.cpu(), *batch);
      for (size_t i = 0; i < part.size(); ++i) sums[i] += part[i];
    }
    judged(batch->valid + std::ssize(batch->faults));
  }
  return std::nullopt;
}

/// `shards`: of this rank; nothing when it was interrupted.
std::optional<Sums> sum_over_shards(const std::optional<std::vector<Sums>>& shards, size_t size,
                                    ProcessGroup& group) {
  Sums values(size + 1);
  for (size_t i = 0; i < size; ++i) {
    std::vector<double> entry;
    for (const auto& shard : shards.value_or(std::vector<Sums>())) entry.push_back(shard[i]);
    values[i] = tree_sum(entry);
  }
  values[size] = shards ? 0 : 1;
  group.all_reduce(values.data(), std::ssize(values), DType::kFloat64, ReduceOp::kSum).wait();
  if (values[size] > 0) return std::nullopt;
  values.pop_back();
  return values;
}

}  // namespace

Progress to_progress(const EvalState& state, int num_ranks) {
  Progress progress;
  progress.title = "evaluation";
  progress.step = state.judged * num_ranks;
  progress.num_steps = state.samples * num_ranks;
  const double seconds = std::chrono::duration<double>(state.elapsed).count();
  if (seconds > 0) progress.images_per_s = static_cast<double>(progress.step) / seconds;
  progress.left = estimate_left(state.judged, std::max<int64_t>(state.samples - state.judged, 0),
                                state.elapsed);
  return progress;
}

std::optional<EvalResult> evaluate(Model& model, BatchSource& loader,
                                   std::span<const DistributedSampler> samplers,
                                   ProcessGroup& group, Task& task, AmpLevel level,
                                   const EvalHooks& hooks) {
  const auto begin = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  broadcast_values(group, buffers_of(model));
  model.eval();
  std::optional<std::vector<Sums>> shards(std::in_place);
  EvalState state;
  for (const auto& sampler : samplers) state.samples += sampler.num_unpadded();
  const auto judged = [&](int64_t samples) {
    state.judged += samples;
    state.elapsed = std::chrono::steady_clock::now() - begin;
    hooks.judged(state);
  };
  for (const auto& sampler : samplers) {
    loader.start(0, sampler.indices(), sampler.num_unpadded());
    const auto sums = sum_over_batches(model, loader, task, level, hooks, judged);
    if (!sums) {
      shards.reset();
      break;
    }
    shards->push_back(*sums);
  }
  model.train(was_training);
  const auto sums = sum_over_shards(shards, task.num_sums() + 1, group);
  if (!sums) return std::nullopt;
  EvalResult result = task.result({sums->data(), task.num_sums()});
  result.faults = static_cast<int64_t>(sums->back());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace lockstep
