#pragma once
// The folders of a run's logs, and whether there is room in them.

#include <chrono>
#include <optional>
#include <string>

#include "lockstep/launch/job/run_options.h"
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

/// Pure: some local rank has a stream that goes to a file and not through the agent, which would
/// see a write that fails.
bool ranks_write_files(const RunOptions& options, int local_size);

/// Why a file in `folder` cannot grow: "No space left on device"; "": it can, or nobody can tell.
/// Cost: a page is written to a file without a name.
std::string why_no_room(const std::string& folder);

/// Looks now and then whether there is room, and says so once when there is none: ranks that write
/// to files themselves mostly do not look whether that goes well.
class LogRoom {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void begin();
  /// When to look(); nothing: not at all.
  std::optional<Time> due() const { return due_; }
  void look(const std::string& folder);

 private:
  std::optional<Time> due_;
};

}  // namespace lockstep
