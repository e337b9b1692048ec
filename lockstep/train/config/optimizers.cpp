#include "lockstep/train/config/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/error.h"

namespace lockstep::inline internal {

bool OptimizerKind::has(std::string_view key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::span<const OptimizerKind> optimizer_kinds() {
  using Rule = OptimizerRule;
  static const std::array<OptimizerKind, 11> kinds = {{
      {"sgd", "stochastic gradient descent", Rule::kSgd, {"dampening"}, 0, true},
      {"momentum", "as sgd, under a name of MindOCR", Rule::kSgd, {}, 0},
      {"nesterov", "as sgd, under a name of MindOCR", Rule::kSgd, {}, 0},
      {"adam", "decay is added to the gradient", Rule::kAdam, {"use_amsgrad"}, 2},
      {"adamw", "Adam with decay apart from the gradient", Rule::kAdamW, {"use_amsgrad"}, 2},
      {.name = "lion",
       .about = "the sign of a momentum; arXiv:2302.06675",
       .rule = Rule::kOurs,
       .keys = {},
       .slots = 1,
       .beta2 = 0.99},
      {"nadam", "Adam with Nesterov's momentum", Rule::kOurs, {"schedule_decay"}, 2},
      {"adan",
       "adaptive Nesterov's momentum; arXiv:2208.06677",
       Rule::kOurs,
       {"beta3"},
       4,
       true,
       0.98,
       0.92},
      {.name = "rmsprop",
       .about = "gradients by the root of their mean square, as in MindSpore",
       .rule = Rule::kOurs,
       .keys = {"decay", "centered"},
       .slots = 2,
       .eps = 1e-10},
      {.name = "adagrad",
       .about = "gradients by the root of the sum of squares",
       .rule = Rule::kAdagrad,
       .keys = {"accum", "update_slots"},
       .slots = 1,
       .eps = 0},
      {.name = "lamb",
       .about = "Adam with a rate for each tensor, for large batches; arXiv:1904.00962",
       .rule = Rule::kOurs,
       .keys = {},
       .slots = 2,
       .eps = 1e-6},
  }};
  return kinds;
}

const OptimizerKind* find_optimizer(std::string_view name) {
  return find_named(optimizer_kinds(), name);
}

const OptimizerKind& optimizer_kind(const OptimizerConfig& config) {
  if (const auto* kind = find_optimizer(config.opt)) return *kind;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown optimizer '{}'", config.opt));
}

}  // namespace lockstep::inline internal
