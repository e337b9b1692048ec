#pragma once
// How the lines of a job's workers look on this agent's console.

#include "lockstep/launch/agent/output/worker_lines.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/console.h"
#include "lockstep/world/worker_env.h"

namespace lockstep {

/// Of a terminal, this many lines a second and rank are shown, unless --log_rate says otherwise.
constexpr int kTerminalLinesASecond = 1000;

/// Whether workers' output is shown as it is: with --raw, and where there is one rank in all and
/// nobody asked for a prefix.
bool shows_raw(const RunOptions& options, const Environment& environment);

/// Pure. `environment`: NO_COLOR, TERM, TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE. `attempt_folder`:
/// for copies of lines; empty: none are made.
WorkerLinesOptions job_lines(const RunOptions& options, const Environment& environment,
                             const JobPlan& plan, const ConsoleKind& console,
                             const std::string& attempt_folder);

}  // namespace lockstep
