#pragma once
// What a trainer has to know of what a network learns; everything else is the same for all tasks.

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

/// How good the weights are.
struct EvalResult {
  int64_t samples = 0;
  std::optional<double> loss{};  ///< Mean over samples, of tasks that evaluate it.
  /// By name, in the order of result.log: those of Task::metric_names().
  std::vector<std::pair<std::string, double>> metrics{};
  double seconds = 0;
  /// Samples that could not be evaluated, of all ranks.
  int64_t faults = 0;
  std::vector<std::string> lines{};  ///< For the log, of this rank.

  /// Errors: kInvalidArgument naming the metrics that there are.
  double metric(const std::string& name) const;
};

/// Errors: kInvalidArgument when metric.main_indicator, `name`, is none of `known`.
void check_main_indicator(const std::string& name, std::span<const std::string> known);

/// One a rank; not for several threads at once.
class Task {
 public:
  virtual ~Task() = default;

  /// Scalar float32: the mean over the batch, with its graph. `output`: of the network in training.
  /// Errors: kInvalidArgument when targets do not fit.
  virtual at::Tensor loss(const at::Tensor& output, std::span<const at::Tensor> targets) = 0;

  /// What loss() may log(): metrics.jsonl has a field of each name with every optimizer step, the
  /// mean over all ranks. The same on every rank, and no name that metrics.jsonl has already.
  virtual std::vector<std::string> log_names() const { return {}; }
  /// What was logged since the last call, in the order of log_names(); undefined where nothing was.
  std::vector<at::Tensor> take_logged();

  /// In the order of result.log. Which one checkpoints are ranked by is metric.main_indicator.
  virtual std::vector<std::string> metric_names() const = 0;

  /// Entries of sums().
  virtual size_t num_sums() const = 0;
  /// Of the samples of a batch that count (batch.valid, 0 too): adding the sums of two sets of
  /// samples, entry by entry, gives those of both. `output`: of the network in evaluation, float32,
  /// on the CPU.
  virtual std::vector<double> sums(const at::Tensor& output, const Batch& batch) = 0;
  /// All but the time.
  virtual EvalResult result(std::span<const double> sums) = 0;

 protected:
  /// Within loss(): one number of this batch, a mean over it. Errors: kInvalidArgument for a name
  /// that is not in log_names(), or several numbers.
  void log(const std::string& name, const at::Tensor& value);

 private:
  std::vector<at::Tensor> logged_;
};

/// The one that model.type, loss, postprocess and metric name.
std::unique_ptr<Task> make_task(const Config& config);

}  // namespace lockstep
