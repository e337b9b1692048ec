#include "lockstep/train/task/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::inline internal {

void check_main_indicator(const std::string& name, std::span<const std::string> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.main_indicator is '{}', evaluation gives {}", name,
                          fmt::join(known, ", ")));
}

bool is_higher_better(const Metric& metric, const std::string& figure) {
  const auto lower = metric.lower_is_better();
  return figure != "loss" && std::find(lower.begin(), lower.end(), figure) == lower.end();
}

}  // namespace lockstep::inline internal

namespace lockstep {

double EvalResult::metric(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [own, value] : metrics) {
    if (own == name) return value;
    known.push_back(own);
  }
  check_main_indicator(name, known);
  return 0;
}

}  // namespace lockstep
