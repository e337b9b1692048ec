#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// `lockstep run WORDS`. Returns the exit code: the job's (see Agent), 127 if there is no such
/// program, or 126 if it cannot be run. Errors: see parse_run_options() and Rendezvous.
int run_command(const std::vector<std::string>& words);

}  // namespace lockstep
