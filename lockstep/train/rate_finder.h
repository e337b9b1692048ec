#pragma once
// The search for a learning rate: losses of a short run whose rate rises exponentially.
// Source: Smith, arXiv:1506.01186; a tenth of the rate of the lowest loss, as fastai suggests.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/observe/chart.h"

namespace lockstep::inline internal {

/// An optimizer step of the search.
struct RatePoint {
  double lr = 0;
  double loss = 0;  ///< Before the step.
};

inline constexpr double kLowestRate = 1e-7;
inline constexpr double kHighestRate = 10;

/// The rate at `part` of the search, from kLowestRate at 0 to kHighestRate at 1.
double rising_rate(double part);

/// The moving mean of losses that come one after another, with 0.9 of the one before; without the
/// bias of the begin.
class SmoothedLoss {
 public:
  /// Returns the mean with this loss.
  double add(double loss);
  /// The mean is four times its lowest, or no finite number: higher rates are of no more use.
  bool has_diverged() const;

 private:
  double sum_ = 0;
  double weight_ = 0;  ///< Of the losses in the sum.
  double mean_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
};

/// How an optimizer step, or a micro-step before it, ended.
enum class StepEnd : uint8_t { kGoesOn, kUpdated, kDropped };

/// The mean loss over the micro-steps of each optimizer step, or over their items.
class StepLoss {
 public:
  /// Returns the mean after an update. A dropped step has none, and its losses count nowhere; a
  /// step without items has none, too. `weight`: the number of items if they are counted.
  std::optional<double> add(double loss, StepEnd end, double weight = 1);

 private:
  double sum_ = 0;
  double weights_ = 0;
};

/// The mean at each point.
std::vector<double> smoothed_losses(const std::vector<RatePoint>& points);

/// A tenth of the rate at which the smoothed loss is lowest; none unless it falls by 1 % or more
/// from the mean of the first tenth.
std::optional<double> suggested_rate(const std::vector<RatePoint>& points);

/// Some twenty rows of rate, loss and smoothed loss, then a line with the suggestion. `factor`:
/// what the run multiplies scheduler.lr by.
std::string finder_table(const std::vector<RatePoint>& points, double factor = 1);
Chart finder_chart(const std::vector<RatePoint>& points);

}  // namespace lockstep::inline internal
