#pragma once
// The output of `lockstep doctor backends`.

#include <string>
#include <vector>

#include "lockstep/comm/group/backends.h"

namespace lockstep::app {

/// A table for people, or with --json a list of {name, summary, built_in, usable, why_not}. Returns
/// the exit status. Errors: kInvalidArgument (another argument).
int print_backends(const std::vector<BackendReport>& reports, const std::vector<std::string>& args);

}  // namespace lockstep::app
