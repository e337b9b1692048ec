#pragma once
// From the words of the command line to what each worker executes.

#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"

namespace lockstep {

/// The words to execute, as torchrun would: Python ($PYTHON_EXEC, else python3) with -u for a
/// script that ends in .py, for a module (-m) and for --run_path; else the words themselves.
std::vector<std::string> worker_command(const RunOptions& options, const Environment& environment);

/// The script that Python will be asked to read; empty: none.
std::string python_script(const RunOptions& options);

/// ${local_rank} and $local_rank replaced in every argument after the first. Everything else stays,
/// also $$, which torchrun makes $.
std::vector<std::string> with_local_rank(std::vector<std::string> command, int local_rank);

/// By which nodes of one job know that they run the same: the file's name without its folder, or
/// the module's. Of `options` as they were given.
std::string program_name(const RunOptions& options);

}  // namespace lockstep
