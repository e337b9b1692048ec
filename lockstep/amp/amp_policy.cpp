#include "lockstep/amp_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr double kSmallest = std::numeric_limits<float>::min();
constexpr double kLargest = std::numeric_limits<float>::max();

void require(bool holds, const char* field, double value, const char* allowed) {
  if (holds) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("loss scale: {} is {}; it must be {}", field, value, allowed));
}

}  // namespace

const std::vector<std::string>& amp_level_names() {
  static const std::vector<std::string> names = {"O0", "O1", "O2", "O3"};
  return names;
}

const std::string& to_string(AmpLevel level) {
  return amp_level_names()[static_cast<size_t>(level)];
}

AmpLevel parse_amp_level(const std::string& name) {
  const auto& names = amp_level_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<AmpLevel>(found - names.begin());
  throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no level of mixed precision '{}' "
                                                       "(known: {})",
                                                       name, fmt::join(names, ", ")));
}

void LossScaleOptions::validate() const {
  require(init_scale >= kSmallest && init_scale <= kLargest, "init_scale", init_scale,
          "a positive number of float32's normal range");
  require(growth_factor > 1 && growth_factor <= kLargest, "growth_factor", growth_factor,
          "greater than 1");
  require(backoff_factor > 0 && backoff_factor < 1, "backoff_factor", backoff_factor,
          "greater than 0 and less than 1");
  require(growth_interval >= 1, "growth_interval", static_cast<double>(growth_interval),
          "at least 1");
  require(min_scale >= 0 && min_scale <= kLargest, "min_scale", min_scale, "at least 0");
}

LossScaleState first_loss_scale(const LossScaleOptions& options,
                                const std::optional<LossScaleState>& saved) {
  LossScaleState state{options.init_scale, 0, 0};
  if (!saved) return state;
  if (options.dynamic) return *saved;
  state.overflows = saved->overflows;
  return state;
}

LossScaleState next_loss_scale(LossScaleState state, bool overflow,
                               const LossScaleOptions& options) {
  if (overflow) ++state.overflows;
  if (!options.dynamic) return state;
  if (overflow) {
    state.scale =
        std::max(state.scale * options.backoff_factor, std::min(state.scale, options.min_scale));
    state.clean_steps = 0;
  } else if (++state.clean_steps >= options.growth_interval) {
    const double grown = state.scale * options.growth_factor;
    if (grown <= kLargest) state.scale = grown;
    state.clean_steps = 0;
  }
  return state;
}

}  // namespace lockstep
