#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// `lockstep plan`; `words` are those behind the verb. Returns the exit status. Errors:
/// kInvalidArgument, those of load_config().
int run_plan_command(const std::vector<std::string>& words, const std::string& verb);

}  // namespace lockstep
