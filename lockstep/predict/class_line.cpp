#include "lockstep/predict/class_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace lockstep {
namespace {

std::string text_of(const std::string& label) {
  using nlohmann::json;
  return json(label).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// JSON has no other numbers than finite ones.
std::string number_of(float probability) {
  return std::isfinite(probability) ? fmt::format("{:.6f}", probability) : "null";
}

}  // namespace

std::string class_line(const std::string& file, std::span<const float> probabilities,
                       const std::vector<std::string>& names) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto shown = order.begin() + std::min<std::ptrdiff_t>(5, std::ssize(order));
  std::partial_sort(order.begin(), shown, order.end(), [&](size_t a, size_t b) {
    const float left = probabilities[a], right = probabilities[b];
    if (std::isnan(left) != std::isnan(right)) return std::isnan(right);  // what is none is last
    return left > right || (!(left < right) && a < b);
  });
  std::string list;
  for (auto at = order.begin(); at != shown; ++at) {
    list += fmt::format(R"({}{{"label": {}, "class": {}, "probability": {}}})",
                        list.empty() ? "" : ", ", text_of(names.at(*at)), *at,
                        number_of(probabilities[*at]));
  }
  return file + "\t[" + list + "]";
}

}  // namespace lockstep
