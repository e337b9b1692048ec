#pragma once
// Makes each worker's command from the words of the command line.

#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"

namespace lockstep::inline internal {

/// The words to execute, as in torchrun. For a script that ends in .py, a module (-m) or
/// --run_path: Python ($PYTHON_EXEC, else python3) with -u. Otherwise the words themselves.
std::vector<std::string> worker_command(const RunOptions& options, const Environment& environment);

/// The script that Python will read; empty: none.
std::string python_script(const RunOptions& options);

/// Replaces ${local_rank} and $local_rank in every argument after the first. All else stays,
/// including $$, which torchrun turns into $.
std::vector<std::string> with_local_rank(std::vector<std::string> command, int local_rank);

/// A name by which hosts of one job check that they run the same program: the file's name without
/// its folder, or the module's. Expects `options` as they were given.
std::string program_name(const RunOptions& options);

/// The command as one text, by which agents check that they are of one job: program_name(), then
/// the arguments as given. The program's folder is left out, since it may differ between hosts.
/// Expects `options` as they were given.
std::string program_and_arguments(const RunOptions& options);

}  // namespace lockstep::inline internal
