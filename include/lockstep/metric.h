#pragma once
// What an evaluation computes. Each rank adds up its own samples, and the sums of all ranks, added,
// give the result: it is exact on any number of ranks.
//
//   class Error final : public lockstep::Metric {
//     std::vector<std::string> metric_names() const override { return {"error"}; }
//     size_t num_sums() const override { return 2; }
//     std::vector<double> sums(const lockstep::Tensors& outputs,
//                              const lockstep::Batch& batch) override;
//     lockstep::EvalResult result(std::span<const double> sums) override;
//   };

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/batch.h"

namespace lockstep {

/// The result of an evaluation.
struct EvalResult {
  int64_t samples = 0;
  std::optional<double> loss{};  ///< Mean over samples, of those metrics that compute it.
  /// By name, in the order of result.log: those of Metric::metric_names().
  std::vector<std::pair<std::string, double>> metrics{};
  double seconds = 0;
  /// Samples that could not be evaluated, of all ranks.
  int64_t faults = 0;
  std::vector<std::string> lines{};  ///< For the log, of this rank.

  /// Errors: kInvalidArgument naming the known metrics.
  double metric(const std::string& name) const;
};

/// One per rank; not thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;

  /// In the order of result.log. metric.main_indicator selects the one that ranks checkpoints:
  /// higher is better.
  virtual std::vector<std::string> metric_names() const = 0;
  /// Number of entries of sums().
  virtual size_t num_sums() const = 0;
  /// Sums over the first batch.valid samples of a batch (may be 0). Adding the sums of two sets of
  /// samples, entry by entry, gives those of both. `outputs`: of the network in evaluation,
  /// float32, on the CPU.
  virtual std::vector<double> sums(const Tensors& outputs, const Batch& batch) = 0;
  /// The result, without the time.
  virtual EvalResult result(std::span<const double> sums) = 0;
};

}  // namespace lockstep
