#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// `lockstep ranktable WORDS...`: makes, merges or checks rank tables. Returns the exit status: 2
/// if --check found a fault. Errors: those of reading and writing the files.
int rank_table_command(const std::vector<std::string>& words);

}  // namespace lockstep
