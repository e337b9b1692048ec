#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// `lockstep predict`; `words` are those behind the verb. One process of a run, alone or under any
/// launcher that World::join() detects. Returns the exit status. Errors: kInvalidArgument, those of
/// load_plugins(), plan_prediction() and run_prediction().
int run_predict_command(const std::vector<std::string>& words, const std::string& verb);

}  // namespace lockstep
