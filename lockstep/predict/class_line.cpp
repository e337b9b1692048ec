#include "lockstep/predict/class_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace lockstep {

std::string class_line(const std::string& file, std::span<const float> probabilities,
                       const std::vector<std::string>& names) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto shown = order.begin() + std::min<std::ptrdiff_t>(5, std::ssize(order));
  std::partial_sort(order.begin(), shown, order.end(), [&](size_t a, size_t b) {
    return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
  });
  std::string list;
  for (auto at = order.begin(); at != shown; ++at) {
    list += fmt::format(R"({}{{"label": {}, "class": {}, "probability": {:.6f}}})",
                        list.empty() ? "" : ", ", nlohmann::json(names.at(*at)).dump(), *at,
                        probabilities[*at]);
  }
  return file + "\t[" + list + "]";
}

}  // namespace lockstep
