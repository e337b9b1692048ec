#pragma once
// The folders of a run's logs, and the check for free space in them.

#include <chrono>
#include <optional>
#include <string>

#include "lockstep/launch/job/run_options.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

/// Makes LOG_DIR/RUN and returns its path; RUN is the run's id, with _nodeR if there are several
/// hosts. Appends _2, _3, ... to a name that exists already, so that no earlier output is touched.
/// Errors: kIo.
std::string make_run_folder(const std::string& log_dir, const JobAssignment& assignment);

/// Makes RUN_FOLDER/attempt_N and a folder for each local rank in it; N is the restart count. A
/// further generation of the same attempt (hosts came or left) gets attempt_N_generation_G.
/// Returns its path. Errors: kIo.
std::string make_attempt_folder(const std::string& run_folder, const JobAssignment& assignment);

/// Pure: some local rank has a stream that goes to a file directly. The agent would not see a
/// failed write.
bool ranks_write_files(const RunOptions& options, int local_size);

/// Why a file in `folder` cannot grow: "No space left on device"; "" if it can, or if that is
/// unknown. Cost: writes a page to an unnamed file.
std::string why_no_room(const std::string& folder);

/// Checks now and then for free space, and warns once when there is none. Ranks that write files
/// themselves mostly do not check their writes.
class LogRoom {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void begin();
  /// When to look(); nothing: never.
  std::optional<Time> due() const { return due_; }
  void look(const std::string& folder);

 private:
  std::optional<Time> due_;
};

}  // namespace lockstep::inline internal
