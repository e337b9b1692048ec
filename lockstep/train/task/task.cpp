#include "lockstep/train/task/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

void check_main_indicator(const std::string& name, std::span<const std::string> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.main_indicator is '{}', evaluation gives {}", name,
                          fmt::join(known, ", ")));
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

namespace lockstep::inline internal {

void Task::log(const std::string& name, const at::Tensor& value) {
  const auto names = log_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end() || value.numel() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                found == names.end()
                    ? fmt::format("Task::log('{}'): log_names() has no such name{}", name,
                                  did_you_mean(name, names))
                    : fmt::format("Task::log('{}'): {} numbers, not one", name, value.numel()));
  }
  logged_.resize(names.size());
  logged_[static_cast<size_t>(found - names.begin())] = value.detach();
}

std::vector<at::Tensor> Task::take_logged() {
  logged_.resize(log_names().size());
  return std::exchange(logged_, {});
}

}  // namespace lockstep::inline internal
