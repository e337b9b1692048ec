#include "lockstep/train/rate_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::inline internal {
namespace {

constexpr double kKept = 0.9;  ///< Of the moving mean.
constexpr double kMostRise = 4;

size_t lowest_of(const std::vector<double>& losses) {
  return static_cast<size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
}

std::string row(const RatePoint& point, double smoothed) {
  return fmt::format("{:.1e}   {:10.6f}   {:10.6f}\n", point.lr, point.loss, smoothed);
}

}  // namespace

double rising_rate(double part) {
  return kLowestRate * std::pow(kHighestRate / kLowestRate, std::clamp(part, 0.0, 1.0));
}

double SmoothedLoss::add(double loss) {
  sum_ = kKept * sum_ + (1 - kKept) * loss;
  weight_ = kKept * weight_ + (1 - kKept);
  mean_ = sum_ / weight_;
  lowest_ = std::min(lowest_, mean_);
  return mean_;
}

bool SmoothedLoss::has_diverged() const {
  return !std::isfinite(mean_) || (lowest_ > 0 && mean_ > kMostRise * lowest_);
}

std::optional<double> StepLoss::add(double loss, StepEnd end, double weight) {
  sum_ += loss * weight;
  weights_ += weight;
  if (end == StepEnd::kGoesOn) return std::nullopt;
  const StepLoss step = std::exchange(*this, {});
  if (end == StepEnd::kDropped || step.weights_ == 0) return std::nullopt;
  return step.sum_ / step.weights_;
}

std::vector<double> smoothed_losses(const std::vector<RatePoint>& points) {
  std::vector<double> losses;
  SmoothedLoss smoothed;
  for (const auto& point : points) losses.push_back(smoothed.add(point.loss));
  return losses;
}

std::optional<double> suggested_rate(const std::vector<RatePoint>& points) {
  constexpr double kLeastFall = 0.01;
  if (points.empty()) return std::nullopt;
  const auto losses = smoothed_losses(points);
  const size_t first = std::max<size_t>(1, points.size() / 10);
  double begin = 0;
  for (size_t i = 0; i < first; ++i) begin += points[i].loss / static_cast<double>(first);
  const size_t lowest = lowest_of(losses);
  const bool falls = lowest >= first && begin - losses[lowest] >= kLeastFall * std::abs(begin);
  if (!falls) return std::nullopt;
  return points[lowest].lr / 10;
}

std::string finder_table(const std::vector<RatePoint>& points, double factor) {
  constexpr size_t kRows = 20;
  const auto losses = smoothed_losses(points);
  std::string text = "rate      loss         smoothed\n";
  const size_t stride = std::max<size_t>(1, points.size() / kRows);
  for (size_t i = 0; i < points.size(); i += stride) text += row(points[i], losses[i]);
  const auto rate = suggested_rate(points);
  if (!rate) return text + "No suggestion: the loss did not fall\n";
  const std::string scaled =
      factor == 1 ? "" : fmt::format("; parallel.scale_rate makes it {:.1e}", *rate);
  return text + fmt::format(
                    "Suggestion: scheduler.lr={:.1e}, a tenth of the rate at which the loss "
                    "is lowest ({:.1e}){}\n",
                    *rate / factor, *rate * 10, scaled);
}

Chart finder_chart(const std::vector<RatePoint>& points) {
  Chart chart{"Loss of a rising learning rate", "learning rate", "loss"};
  Series raw{"loss", {}, false, true}, smooth{"smoothed", {}, false, false};
  const auto losses = smoothed_losses(points);
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = std::log10(points[i].lr);
    raw.points.emplace_back(x, points[i].loss);
    smooth.points.emplace_back(x, losses[i]);
  }
  chart.series = {std::move(raw), std::move(smooth)};
  for (int power = -7; power <= 1; ++power) {
    chart.x_names.emplace_back(power, fmt::format("1e{}", power));
  }
  return chart;
}

}  // namespace lockstep::inline internal
