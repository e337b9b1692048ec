#include "lockstep/train/task/task.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/train/task/classification.h"

namespace lockstep {

double EvalResult::metric(const std::string& name) const {
  std::string known;
  for (const auto& [own, value] : metrics) {
    if (own == name) return value;
    known += (known.empty() ? "" : ", ") + own;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.main_indicator is '{}', evaluation gives {}", name, known));
}

std::unique_ptr<Task> make_task(const Config& config) {
  return std::make_unique<ClassificationTask>(std::get<CrossEntropyConfig>(config.loss),
                                              config.model.head.num_classes);
}

}  // namespace lockstep
