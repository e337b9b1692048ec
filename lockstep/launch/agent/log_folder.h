#pragma once

#include <string>

#include "lockstep/world/worker_env.h"

namespace lockstep {

/// Makes LOG_DIR/RUN, where RUN is the run's id, with _nodeR where there are several nodes and _2,
/// _3, ... where that exists already: an earlier run's output is never touched. Returns its path.
/// Errors: kIo.
std::string make_run_folder(const std::string& log_dir, const JobPlan& plan);

/// Makes RUN_FOLDER/attempt_N and a folder for each local rank in it; N is the restart count. A
/// further generation of the same attempt (nodes came or left) gets attempt_N_generation_G.
/// Returns its path. Errors: kIo.
std::string make_attempt_folder(const std::string& run_folder, const JobPlan& plan);

}  // namespace lockstep
