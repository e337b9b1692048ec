#include "lockstep/train/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "lockstep/autocast.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/evaluation.h"
#include "lockstep/parallel/subtree_reduction.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/train/disk_work.h"

namespace lockstep::inline internal {
namespace {

/// A task's sums; then the numbers of faults, and of samples of which an output is nan or inf.
using Sums = std::vector<double>;
constexpr size_t kMoreSums = 2;

/// Samples, the first `valid` rows of `rows`, of which an output is nan or inf. Classes that a
/// network hides have logits of -inf, which count as numbers.
/// Cost: a sum of each output, unless it is not finite.
int64_t count_not_finite(const Tensors& outputs, int64_t rows, int64_t valid) {
  if (valid == 0) return 0;
  at::Tensor bad;
  for (const auto& output : outputs) {
    if (!output.defined() || !output.is_floating_point()) continue;
    if (std::isfinite(output.sum().item().toDouble())) continue;
    const auto wrong = output.isnan().logical_or(output.isposinf());
    const bool of_samples = output.dim() > 0 && output.size(0) == rows;
    const auto samples = of_samples ? wrong.reshape({rows, -1}).any(1).narrow(0, 0, valid)
                                    : wrong.any().expand({valid});
    bad = bad.defined() ? bad.logical_or(samples) : samples;
  }
  return bad.defined() ? bad.sum().item().toLong() : 0;
}

/// Sums of one virtual rank; nothing if interrupted.
std::optional<Sums> sum_over_batches(Model& model, BatchSource& loader, Task& task, AmpLevel level,
                                     const EvalHooks& hooks, DiskWork& work,
                                     const std::function<void(int64_t)>& evaluated) {
  Sums sums(task.num_sums() + kMoreSums);
  double& faults = sums[task.num_sums()];
  double& not_finite = sums.back();
  const at::Device device = model.device();
  for (int64_t taken = 0; !hooks.interrupted(); ++taken) {
    if (hooks.max_batches > 0 && taken == hooks.max_batches) return sums;
    std::optional<Batch> batch;
    work.read([&] { batch = loader.next(); });
    if (!batch) return sums;
    for (const auto& line : batch->faults) hooks.fault(line);
    faults += static_cast<double>(batch->faults.size());
    if (batch->images.size(0) > 0) {
      const auto inputs = batch->inputs_on(device);
      auto outputs =
          forward_at(level, inputs, [&](const Tensors& given) { return model.compute(given); });
      for (auto& output : outputs) output = output.cpu();
      not_finite +=
          static_cast<double>(count_not_finite(outputs, batch->images.size(0), batch->valid));
      const auto part = task.sums(outputs, *batch);
      for (size_t i = 0; i < part.size(); ++i) sums[i] += part[i];
    }
    evaluated(batch->valid + std::ssize(batch->faults));
  }
  return std::nullopt;
}

/// The reason why a rank could not evaluate its part, in a fixed size for all_gather.
struct Failure {
  int32_t failed = 0;
  ErrorCode code{};
  std::array<char, 1000> text{};

  void set(ErrorCode what, std::string_view why) {
    failed = 1;
    code = what;
    std::copy_n(why.begin(), std::min(why.size(), text.size() - 1), text.begin());
  }
};

/// This rank's results for its virtual ranks.
struct Part {
  std::vector<Sums> virtual_ranks;
  bool interrupted = false;
  Failure failure;
};

/// Collective, after a rank has failed: throws the error of the first one.
[[noreturn]] void throw_failure(const Failure& own, ProcessGroup& group) {
  std::vector<Failure> all(static_cast<size_t>(group.size()));
  group.all_gather(&own, all.data(), sizeof own, DType::kInt8).wait();
  const auto first = std::find_if(all.begin(), all.end(), [](auto& one) { return one.failed; });
  const auto rank = static_cast<int>(first - all.begin());
  const std::string why = first->text.data();
  throw EvaluationFailed(first->code,
                         group.size() == 1 ? why : fmt::format("on rank {}: {}", rank, why));
}

/// Sums over all virtual ranks, in the tree's order.
std::optional<Sums> sum_over_all(const Part& part, size_t size, const VirtualRankRange& range,
                                 ProcessGroup& group) {
  Sums values(size + 2);
  std::vector<std::vector<double>> rows(size);
  const bool complete = !part.interrupted && !part.failure.failed;
  for (size_t i = 0; complete && i < size; ++i) {
    for (const auto& virtual_rank : part.virtual_ranks) rows[i].push_back(virtual_rank[i]);
    values[i] = tree_sum(rows[i]);
  }
  values[size] = part.interrupted ? 1 : 0;
  values[size + 1] = part.failure.failed;
  group.all_reduce(values.data(), std::ssize(values), DType::kFloat64, ReduceOp::kSum).wait();
  if (values[size + 1] > 0) throw_failure(part.failure, group);
  if (values[size] > 0) return std::nullopt;
  if (!ranks_add_as_tree(range.total, group.size())) {
    return sum_over_virtual_ranks(group, range, rows);
  }
  values.resize(size);
  return values;
}

/// Collective: gives all ranks rank 0's figures. A program's own metric may have other ones on each
/// rank, and what they decide must be the same. Errors: kMismatch, on every rank.
void share_figures(EvalResult& result, ProcessGroup& group) {
  if (group.size() == 1) return;
  std::vector<double> figures = {result.loss.value_or(0)};
  std::string names = result.loss ? "loss" : "";
  for (const auto& [name, value] : result.metrics) {
    figures.push_back(value);
    names += '\n' + name;
  }
  const auto digest = static_cast<int64_t>(hash_of(names) >> 1);
  std::array<int64_t, 4> same = {std::ssize(figures), -std::ssize(figures), digest, -digest};
  group.all_reduce(same.data(), std::ssize(same), DType::kInt64, ReduceOp::kMin).wait();
  if (same[0] != -same[1]) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("the ranks differ: a metric gives {} figures on one rank, and {} on "
                            "another",
                            same[0] - 1, -same[1] - 1));
  }
  if (same[2] != -same[3]) {
    throw Error(ErrorCode::kMismatch, "the ranks differ: a metric names its figures otherwise");
  }
  group.broadcast(figures.data(), std::ssize(figures), DType::kFloat64, 0).wait();
  if (result.loss) result.loss = figures[0];
  for (size_t i = 0; i < result.metrics.size(); ++i) result.metrics[i].second = figures[i + 1];
}

/// Files and what ranks checkpoints go by the names that the metrics announce. After
/// share_figures() all ranks have the same figures, so that all throw. It ends a run: later
/// evaluations would fail as well.
void check_figure_names(const EvalResult& result, const std::vector<std::string>& announced) {
  std::vector<std::string> given;
  for (const auto& [name, value] : result.metrics) given.push_back(name);
  if (given == announced) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("Metric::result() gives {}, and metric_names() has {}",
                          given.empty() ? "no figure" : fmt::format("{}", fmt::join(given, ", ")),
                          fmt::join(announced, ", ")));
}

std::string not_finite_line(double samples, int64_t all) {
  return fmt::format(
      "evaluation: the network's outputs are not finite for {:.0f} of {} samples: figures that "
      "count them have no meaning",
      samples, all);
}

/// An exception of `work` ends only this rank's part.
void attempt(const std::function<void()>& work, Failure* failure) {
  try {
    work();
  } catch (const Error& error) {
    failure->set(error.code(), error.what());
  } catch (const std::exception& error) {  // for example of libtorch
    failure->set(ErrorCode::kInternal, first_line(error.what()));
  } catch (...) {
    failure->set(ErrorCode::kInternal, "an exception that is no std::exception");
  }
}

}  // namespace

Progress to_progress(const EvalState& state, const VirtualRankRange& range) {
  Progress progress;
  progress.title = "evaluation";
  progress.step = state.evaluated * range.total / range.count;
  progress.num_steps = state.samples * range.total / range.count;
  const double seconds = std::chrono::duration<double>(state.elapsed).count();
  if (seconds > 0) progress.images_per_s = static_cast<double>(progress.step) / seconds;
  progress.left = estimate_left(
      state.evaluated, std::max<int64_t>(state.samples - state.evaluated, 0), state.elapsed);
  return progress;
}

std::optional<EvalResult> evaluate(Model& model, BatchSource& loader,
                                   std::span<const DistributedSampler> samplers,
                                   ProcessGroup& group, Task& task, AmpLevel level,
                                   const EvalHooks& hooks) {
  const auto begin = std::chrono::steady_clock::now();
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  broadcast_buffers(group, model);
  model.eval();
  task.start_evaluation();
  Part part;
  EvalState state;
  for (const auto& sampler : samplers) state.samples += sampler.num_unpadded();
  const auto evaluated = [&](int64_t samples) {
    state.evaluated += samples;
    state.elapsed = std::chrono::steady_clock::now() - begin;
    hooks.evaluated(state);
  };
  DiskWork work(group, "a batch of the evaluation's data is read", hooks.disk_limit);
  const auto evaluate_virtual_rank = [&](const DistributedSampler& sampler) {
    loader.start(0, {sampler.indices()}, sampler.num_unpadded());
    auto sums = sum_over_batches(model, loader, task, level, hooks, work, evaluated);
    part.interrupted = !sums;
    if (sums) part.virtual_ranks.push_back(std::move(*sums));
  };
  for (const auto& sampler : samplers) {
    if (part.interrupted || part.failure.failed) break;
    attempt([&] { evaluate_virtual_rank(sampler); }, &part.failure);
  }
  model.train(was_training);
  work.finish();
  const auto range = deal_virtual_ranks(samplers.front().num_parts(), group.rank(), group.size());
  const auto sums = sum_over_all(part, task.num_sums() + kMoreSums, range, group);
  if (!sums) return std::nullopt;
  task.join_ranks(group);
  EvalResult result = task.result({sums->data(), task.num_sums()});
  share_figures(result, group);
  check_figure_names(result, task.metric_names());
  result.faults = static_cast<int64_t>((*sums)[task.num_sums()]);
  if (sums->back() > 0 && group.rank() == 0) {
    result.warnings.push_back(not_finite_line(sums->back(), result.samples));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace lockstep::inline internal
