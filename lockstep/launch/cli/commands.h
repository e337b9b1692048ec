#pragma once
// Verbs of `lockstep` that the launcher runs. `words` are those behind the verb. See
// jobs/job_control.h for ps, stop and logs.

#include <string>
#include <vector>

namespace lockstep::inline internal {

/// `lockstep run`. Returns the exit code: the job's (see Agent), 127 if there is no such program,
/// or 126 if it cannot be run. Errors: see parse_run_options() and Rendezvous.
int run_command(const std::vector<std::string>& words);

/// `lockstep ranktable`: makes, merges or checks rank tables. Returns the exit status: 2 if --check
/// found a fault. Errors: those of reading and writing the files.
int rank_table_command(const std::vector<std::string>& words);

}  // namespace lockstep::inline internal
