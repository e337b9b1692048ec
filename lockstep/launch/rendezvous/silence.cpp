#include "lockstep/launch/rendezvous/silence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/log.h"

namespace lockstep::inline internal {
namespace {

using std::chrono::milliseconds;

/// Heartbeats a second of all agents together.
constexpr int64_t kMaxSignsPerSecond = 10000;
constexpr milliseconds kLeastOfFixed{30000};
constexpr milliseconds kLeastLease{10000};

}  // namespace

milliseconds heartbeat_interval(milliseconds asked, int64_t num_agents) {
  return std::max(asked, milliseconds(num_agents * 1000 / kMaxSignsPerSecond));
}

Silence allowed_silence(const RunOptions& options, bool by_lease, int64_t num_agents) {
  Silence silence;
  silence.interval = heartbeat_interval(options.heartbeat_interval, num_agents);
  silence.limit = silence.interval * options.heartbeat_attempts;
  if (!options.silence_given) {
    if (!can_change(options)) silence.limit = std::max(silence.limit, kLeastOfFixed);
    if (by_lease) silence.limit = std::max(silence.limit, kLeastLease);
  }
  if (by_lease) silence.interval = std::max(silence.limit / 3, milliseconds(1));
  return silence;
}

Contact::Contact(const RunOptions& options, const RendezvousBackend* backend)
    : options_(options),
      backend_(backend),
      allowed_(allowed_silence(options, backend->by_lease())) {}

void Contact::count_agents(int64_t num_agents) {
  allowed_ = allowed_silence(options_, backend_->by_lease(), num_agents);
}

void Contact::heard() {
  heard_at_ = Deadline::after(milliseconds(0));
  if (std::exchange(reported_, false)) log_info(backend_->name() + " answers again");
}

void Contact::report_silence() {
  if (std::exchange(reported_, true)) return;
  log_warn(fmt::format("{} does not answer; this host gives it up after {} s of silence",
                       backend_->name(), std::chrono::duration<double>(allowed_.limit).count()));
}

}  // namespace lockstep::inline internal
