#pragma once
// Where `lockstep run --log_dir DIR` keeps flight recorders: DIR/RUN/attempt_N/rank_R.flight, and
// RUN_node0, RUN_node1 ... of a job of several nodes whose hosts share DIR.

#include <filesystem>
#include <vector>

namespace lockstep::app {

/// What `lockstep inspect` reads for a folder that holds no recorders itself: those of the attempt
/// below it that wrote last, one folder a node.
struct NewestAttempt {
  std::vector<std::filesystem::path> folders;  ///< Empty: no attempt below has recorders.
  std::vector<std::filesystem::path> others;   ///< Those of other attempts and runs, sorted.
};

/// `folder`: DIR or DIR/RUN. What cannot be read is not there.
NewestAttempt newest_attempt(const std::filesystem::path& folder);

}  // namespace lockstep::app
