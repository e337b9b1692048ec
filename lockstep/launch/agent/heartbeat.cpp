#include "lockstep/launch/agent/heartbeat.h"

namespace lockstep {

void HeartbeatTable::seen(int node, const std::string& beat, Time now) {
  Heart& heart = hearts_[static_cast<size_t>(node)];
  if (beat != heart.beat) heart = {beat, now};
}

std::vector<int> HeartbeatTable::silent(Time now, std::chrono::milliseconds limit) const {
  std::vector<int> nodes;
  for (size_t i = 0; i < hearts_.size(); ++i) {
    if (now - hearts_[i].changed > limit) nodes.push_back(static_cast<int>(i));
  }
  return nodes;
}

}  // namespace lockstep
