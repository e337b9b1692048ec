#include "lockstep/train/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "lockstep/amp/autocast.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/shards.h"
#include "lockstep/train/loss.h"

namespace lockstep {
namespace {

/// Those of one shard; nothing when interrupted.
std::optional<EvalSums> sum_over_batches(Model& model, Loader& loader, const LossConfig& config,
                                         AmpLevel level, const std::function<bool()>& interrupted) {
  EvalSums sums;
  while (!interrupted()) {
    const auto batch = loader.next();
    if (!batch) return sums;
    const auto logits = forward_at(level, batch->images,
                                   [&](const at::Tensor& images) { return model.forward(images); });
    const auto part = eval_sums(logits, batch->labels, batch->valid, config);
    sums.samples += part.samples;
    sums.loss += part.loss;
    sums.correct += part.correct;
    sums.correct5 += part.correct5;
  }
  return std::nullopt;
}

/// `shards`: of this rank; nothing when it was interrupted.
std::optional<EvalSums> sum_over_shards(const std::optional<std::vector<EvalSums>>& shards,
                                        ProcessGroup& group) {
  std::array<std::vector<double>, 4> fields;
  for (const auto& shard : shards.value_or(std::vector<EvalSums>())) {
    fields[0].push_back(shard.samples);
    fields[1].push_back(shard.loss);
    fields[2].push_back(shard.correct);
    fields[3].push_back(shard.correct5);
  }
  std::array<double, 5> values{};
  for (size_t i = 0; i < fields.size(); ++i) values[i] = tree_sum(fields[i]);
  values[4] = shards ? 0 : 1;
  group.all_reduce(values.data(), values.size(), DType::kFloat64, ReduceOp::kSum).wait();
  if (values[4] > 0) return std::nullopt;
  return EvalSums{values[0], values[1], values[2], values[3]};
}

}  // namespace

EvalSums eval_sums(const at::Tensor& logits, const at::Tensor& labels, int64_t valid,
                   const LossConfig& config) {
  if (valid == 0) return {};
  const auto rows = logits.narrow(0, 0, valid);
  const auto truth = labels.narrow(0, 0, valid);
  const int64_t best = std::min<int64_t>(5, logits.size(1));
  const auto top = std::get<1>(at::topk(rows, best, 1));  // (valid, best), best first
  const auto hits = top.eq(truth.unsqueeze(1));
  EvalSums sums;
  sums.samples = static_cast<double>(valid);
  sums.loss = classification_loss(rows, truth, config).item().toDouble() * sums.samples;
  sums.correct = static_cast<double>(hits.select(1, 0).sum().item().toLong());
  sums.correct5 = static_cast<double>(hits.sum().item().toLong());
  return sums;
}

std::vector<std::pair<std::string, double>> EvalResult::metrics(int64_t num_classes) const {
  if (num_classes <= 5) return {{"acc", acc}};
  return {{"acc", acc}, {"top_5", top_5}};
}

std::optional<EvalResult> evaluate(Model& model, Loader& loader,
                                   std::span<const DistributedSampler> samplers,
                                   ProcessGroup& group, const LossConfig& config, AmpLevel level,
                                   const std::function<bool()>& interrupted) {
  const auto begin = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  broadcast_values(group, buffers_of(model));
  model.eval();
  std::optional<std::vector<EvalSums>> shards(std::in_place);
  for (const auto& sampler : samplers) {
    loader.start(0, sampler.indices(), sampler.num_unpadded());
    const auto sums = sum_over_batches(model, loader, config, level, interrupted);
    if (!sums) {
      shards.reset();
      break;
    }
    shards->push_back(*sums);
  }
  model.train(was_training);
  const auto sums = sum_over_shards(shards, group);
  if (!sums) return std::nullopt;
  const double count = std::max(1.0, sums->samples);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return EvalResult{static_cast<int64_t>(sums->samples), sums->loss / count, sums->correct / count,
                    sums->correct5 / count, took.count()};
}

}  // namespace lockstep
