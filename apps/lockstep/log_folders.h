#pragma once
// The places of flight recorders under `lockstep run --log_dir DIR`:
// DIR/RUN/attempt_N/rank_R.flight, and RUN_node0, RUN_node1 ... for a job of several hosts that
// share DIR.

#include <filesystem>
#include <vector>

namespace lockstep::app {

/// The folders that `lockstep inspect` reads for a folder without recorders: those of the attempt
/// below it with the latest write, one folder per host.
struct NewestAttempt {
  std::vector<std::filesystem::path> folders;  ///< Empty: no attempt below has recorders.
  std::vector<std::filesystem::path> others;   ///< Folders of other attempts and runs, sorted.
};

/// `folder`: DIR or DIR/RUN. Unreadable folders count as absent.
NewestAttempt newest_attempt(const std::filesystem::path& folder);

}  // namespace lockstep::app
