#pragma once

#include <string>

#include "lockstep/launch/agent/worker_env.h"

namespace lockstep {

/// Makes LOG_DIR/RUN/attempt_0, where RUN is the run's id, with _nodeR where there are several
/// nodes and _2, _3, ... where that exists already: an earlier run's output is never touched.
/// Returns its path. Errors: kIo.
std::string make_log_folder(const std::string& log_dir, const JobPlan& plan);

}  // namespace lockstep
