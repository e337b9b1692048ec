#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep {

/// Tells from what each node wrote, and when it was seen to change, which nodes are silent. Only
/// this host's steady clock is read.
class HeartbeatTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  HeartbeatTable(int num_nodes, Time now)
      : hearts_(static_cast<size_t>(num_nodes), Heart{"", now}) {}

  void seen(int node, const std::string& beat, Time now);

  /// Nodes whose beat has not changed for longer than `limit`.
  std::vector<int> silent(Time now, std::chrono::milliseconds limit) const;

 private:
  struct Heart {
    std::string beat;
    Time changed;
  };
  std::vector<Heart> hearts_;
};

}  // namespace lockstep
