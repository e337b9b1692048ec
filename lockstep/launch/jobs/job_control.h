#pragma once
// `lockstep ps`, `lockstep stop`, `lockstep logs`: this user's jobs on this host. Each takes the
// words after its name and returns the exit code. Errors: kInvalidArgument, kNotFound.

#include <string>
#include <vector>

namespace lockstep {

int ps_command(const std::vector<std::string>& words);
int stop_command(const std::vector<std::string>& words);
int logs_command(const std::vector<std::string>& words);

}  // namespace lockstep
