#include "lockstep/amp_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep {

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

}  // namespace lockstep
