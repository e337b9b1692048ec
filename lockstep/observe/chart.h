#pragma once
// Line charts as SVG text: any browser shows them, and no drawing library is needed.

#include <string>
#include <utility>
#include <vector>

namespace lockstep::inline internal {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>>
      points;            ///< x ascending. Points that are not finite: gaps.
  bool markers = false;  ///< A dot per point, for few points.
  bool faint = false;    ///< Thin and pale: raw values behind a mean.
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series = {};
  /// Named ticks in place of numbers, ascending: sizes, ranks, or the numbers of logarithmic
  /// points. Empty: numbers. The y axis goes from the first to the last.
  std::vector<std::pair<double, std::string>> x_names = {};
  std::vector<std::pair<double, std::string>> y_names = {};
};

/// About `wanted` round values for an axis that covers [lo, hi], 1, 2 or 5 times a power of ten
/// apart. The first is at most lo and the last at least hi (except for rounding).
std::vector<double> axis_ticks(double lo, double hi, int wanted);

/// Trailing mean over `window` points.
std::vector<std::pair<double, double>> moving_average(
    const std::vector<std::pair<double, double>>& points, int window);

/// The charts one below the other in one picture of 900 points' width, with axes, grid and legend.
/// They share the x axis.
std::string render_charts(const std::string& title, const std::vector<Chart>& charts);

}  // namespace lockstep::inline internal
