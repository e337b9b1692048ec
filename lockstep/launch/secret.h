#pragma once

#include <string>

namespace lockstep {

/// A job secret in a file: one line, 1 to 4096 characters. Errors: kInvalidArgument when it is
/// empty, belongs to another user, or has another mode than 600 (or 400); kNotFound, kIo.
std::string read_secret_file(const std::string& path);

/// LOCKSTEP_SECRET, else what is in the file LOCKSTEP_SECRET_FILE, else "". Errors: as above.
std::string secret_of_environment();

/// Where the latter has it from, for messages: "the file F (LOCKSTEP_SECRET_FILE)".
std::string secret_source();

}  // namespace lockstep
