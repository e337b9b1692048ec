// Draws the output of the compare_peers scripts, lines "NAME,ranks,bytes,min_us,median_us" with one
// line per round: the median bus bandwidth of each program by size, as SVG.
//
//   bench_chart TITLE < rounds.csv > picture.svg

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/observe/chart.h"

namespace {

using BySize = std::map<int64_t, std::vector<double>>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Bus bandwidths in GB/s, by program and bytes.
std::map<std::string, BySize> read_rounds(std::istream& in) {
  std::map<std::string, BySize> rounds;
  for (std::string line; std::getline(in, line);) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::string name;
    double ranks = 0, least = 0, us = 0;
    int64_t bytes = 0;
    if (!(fields >> name >> ranks >> bytes >> least >> us) || bytes <= 0) continue;
    const double moved = static_cast<double>(bytes) * 2 * (ranks - 1) / ranks;
    rounds[name][bytes].push_back(moved / us / 1e3);
  }
  return rounds;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::Chart chart{.title = "",
                        .x_label = "bytes reduced",
                        .y_label = "bus bandwidth, GB/s, median of the rounds"};
  std::set<int64_t> sizes;
  double most = 1;
  double least = 1;
  for (const auto& [name, by_size] : read_rounds(std::cin)) {
    lockstep::Series series{.label = name, .points = {}, .markers = true};
    for (const auto& [bytes, values] : by_size) {
      const double bandwidth = median(values);
      series.points.emplace_back(std::log2(static_cast<double>(bytes)), std::log10(bandwidth));
      sizes.insert(bytes);
      most = std::max(most, bandwidth);
      least = std::min(least, bandwidth);
    }
    chart.series.push_back(std::move(series));
  }
  for (const auto bytes : sizes) {
    chart.x_names.emplace_back(std::log2(static_cast<double>(bytes)),
                               lockstep::format_bytes(bytes));
  }
  const auto last = static_cast<int>(std::ceil(std::log10(most)));
  for (auto power = static_cast<int>(std::floor(std::log10(least))); power <= last; ++power) {
    chart.y_names.emplace_back(power, fmt::format("{:g}", std::pow(10, power)));
  }
  std::cout << lockstep::render_charts(argc > 1 ? argv[1] : "all_reduce", {chart});
}
