#include "lockstep/comm/flight/diagnostics_thread.h"

#include <fmt/format.h>

#include <string_view>

#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/comm/topology.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kAsk = "ask";
constexpr std::string_view kLookPart = "look/";
constexpr std::string_view kEnd = "end/";
constexpr int kThreadsOfHost = 2;
/// No group lasts longer; the end of the connection is noticed earlier.
constexpr auto kForEver = std::chrono::hours(24 * 365);

std::string prefix_of(const GroupSpec& spec, int host) {
  return fmt::format("{}/diagnostics_thread/{}/", spec.name, host);
}

std::string look_key(const GroupSpec& spec, int host, const std::string& token) {
  return prefix_of(spec, host).append(kLookPart).append(token);
}

void listen(Store& store, const std::string& prefix, const std::string& end,
            const std::function<void(bool)>& answer,
            const std::function<void(const std::string&)>& look) {
  const std::string look_prefix = prefix + std::string(kLookPart);
  uint64_t version = 0;
  while (true) {
    const auto watched = store.watch(prefix, version, Deadline::after(kForEver));
    version = watched.version;
    for (const auto& [key, value] : watched.changes) {
      if (key == end) return;
      if (key == prefix + kAsk && value) answer(*value == "stacks");
      if (value && key.starts_with(look_prefix)) look(key.substr(look_prefix.size()));
    }
  }
}

}  // namespace

DiagnosticsThread::DiagnosticsThread(const GroupSpec& spec,
                                     std::function<void(bool with_stacks)> answer,
                                     std::function<void(const std::string& token)> look) {
  if (!spec.store) return;
  const Topology topology = make_topology(spec.host_ids);
  const int host = topology.host_of[static_cast<size_t>(spec.rank)];
  const int local = topology.local_rank_of[static_cast<size_t>(spec.rank)];
  if (topology.num_hosts() == 1 || local >= kThreadsOfHost) return;
  const std::string prefix = prefix_of(spec, host);
  const std::string end = prefix + std::string(kEnd) + std::to_string(local);
  stop_ = [this, store = spec.store, end] {
    store->set(end, "", Deadline::after(kDiagnosticsStoreLimit));
    thread_.join();
    store->erase(end, Deadline::after(kDiagnosticsStoreLimit));
  };
  const auto body = [store = spec.store, prefix, end, answer = std::move(answer),
                     look = std::move(look)] {
    try {
      listen(*store, prefix, end, answer, look);
    } catch (const std::exception& error) {  // the job is over, or no rank can ask any more
      log_debug(
          fmt::format("no diagnostics thread answers for this host any more: {}", error.what()));
    }
  };
  thread_ = start_thread_with_signals_blocked(body);
}

DiagnosticsThread::~DiagnosticsThread() {
  if (!thread_.joinable()) return;
  try {
    stop_();
  } catch (const std::exception&) {
    // The store does not answer, so the thread may not notice the end. It owns all data that it
    // uses.
    if (thread_.joinable()) thread_.detach();
  }
}

void DiagnosticsThread::ask(const GroupSpec& spec, int host, bool with_stacks, Deadline deadline) {
  spec.store->set(prefix_of(spec, host) + kAsk, with_stacks ? "stacks" : "", deadline);
}

void DiagnosticsThread::ask_to_look(const GroupSpec& spec, int host, const std::string& token,
                                    Deadline deadline) {
  spec.store->set(look_key(spec, host, token), "", deadline);
}

void DiagnosticsThread::take_back(const GroupSpec& spec, const std::string& token,
                                  Deadline deadline) {
  const int hosts = make_topology(spec.host_ids).num_hosts();
  for (int host = 0; host < hosts; ++host) {
    spec.store->erase(look_key(spec, host, token), deadline);
  }
}

}  // namespace lockstep::inline internal
