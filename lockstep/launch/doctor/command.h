#pragma once

#include <string>
#include <vector>

#include "lockstep/base/help_text.h"

namespace lockstep::doctor {

/// `lockstep doctor [OPTIONS]`: examines this host, or several, and prints what to mend. Returns 1
/// if a check fails, else 0. Errors: kInvalidArgument, and those of reading a rank table.
int doctor_command(const std::vector<std::string>& words);

/// The text of --help, without the checks that have names of their own.
HelpPage doctor_help();

}  // namespace lockstep::doctor
