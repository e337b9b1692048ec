#include "lockstep/launch/rendezvous/silence.h"

#include <algorithm>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

/// Signs of life a second that all agents together may give.
constexpr int64_t kMaxSignsPerSecond = 10000;
constexpr milliseconds kLeastOfFixed{30000};
constexpr milliseconds kLeastLease{10000};

}  // namespace

milliseconds beat_interval(milliseconds asked, int64_t num_agents) {
  return std::max(asked, milliseconds(num_agents * 1000 / kMaxSignsPerSecond));
}

Silence allowed_silence(const RunOptions& options, bool by_lease, int64_t num_agents) {
  Silence silence;
  silence.interval = beat_interval(options.heartbeat_interval, num_agents);
  silence.limit = silence.interval * options.heartbeat_attempts;
  if (!options.silence_given) {
    if (!can_change(options)) silence.limit = std::max(silence.limit, kLeastOfFixed);
    if (by_lease) silence.limit = std::max(silence.limit, kLeastLease);
  }
  if (by_lease) silence.interval = std::max(silence.limit / 3, milliseconds(1));
  return silence;
}

}  // namespace lockstep
