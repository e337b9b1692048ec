#pragma once
// The trainer's view of a training task; everything else is the same for all tasks.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/batch.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// The result of an evaluation.
struct EvalResult {
  int64_t samples = 0;
  std::optional<double> loss{};  ///< Mean over samples; set by tasks that evaluate it.
  /// By name, in the order of result.log: those of Task::metric_names().
  std::vector<std::pair<std::string, double>> metrics{};
  double seconds = 0;
  /// Samples that could not be evaluated, of all ranks.
  int64_t faults = 0;
  std::vector<std::string> lines{};  ///< For the log, of this rank.

  /// Errors: kInvalidArgument naming the known metrics.
  double metric(const std::string& name) const;
};

/// Errors: kInvalidArgument if metric.main_indicator, `name`, is none of `known`.
void check_main_indicator(const std::string& name, std::span<const std::string> known);

/// One per rank; not thread-safe.
class Task {
 public:
  virtual ~Task() = default;

  /// Scalar float32: the mean over the batch, with its graph. `output`: of the network in training.
  /// Errors: kInvalidArgument if targets do not fit.
  virtual at::Tensor loss(const at::Tensor& output, std::span<const at::Tensor> targets) = 0;

  /// Names that loss() may log(). Each is a field of metrics.jsonl, written with every optimizer
  /// step: the mean over all ranks. They are the same on every rank, and differ from the other
  /// fields of metrics.jsonl.
  virtual std::vector<std::string> log_names() const { return {}; }
  /// The values logged since the last call, in the order of log_names(); undefined for names
  /// without one.
  std::vector<at::Tensor> take_logged();

  /// In the order of result.log. metric.main_indicator selects the one that ranks checkpoints.
  virtual std::vector<std::string> metric_names() const = 0;

  /// Number of entries of sums().
  virtual size_t num_sums() const = 0;
  /// Sums over the first batch.valid samples of a batch (may be 0). Adding the sums of two sets of
  /// samples, entry by entry, gives those of both. `output`: of the network in evaluation, float32,
  /// on the CPU.
  virtual std::vector<double> sums(const at::Tensor& output, const Batch& batch) = 0;
  /// The result, without the time.
  virtual EvalResult result(std::span<const double> sums) = 0;

 protected:
  /// Call it within loss(): one number of this batch, a mean over it. Errors: kInvalidArgument for
  /// a name that is not in log_names(), or for several numbers.
  void log(const std::string& name, const at::Tensor& value);

 private:
  std::vector<at::Tensor> logged_;
};

/// The task that model.type, loss, postprocess and metric select.
std::unique_ptr<Task> make_task(const Config& config);

}  // namespace lockstep
