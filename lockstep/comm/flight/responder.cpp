#include "lockstep/comm/flight/responder.h"

#include <fmt/format.h>

#include "lockstep/base/log.h"
#include "lockstep/base/quiet_thread.h"
#include "lockstep/comm/topology.h"

namespace lockstep {
namespace {

constexpr auto kAsk = "ask";
constexpr auto kEnd = "end";
/// As long as a group may last; the connection's end is seen before.
constexpr auto kForEver = std::chrono::hours(24 * 365);
constexpr auto kStoreLimit = 1s;

std::string prefix_of(const GroupSpec& spec, int host) {
  return fmt::format("{}/responder/{}/", spec.name, host);
}

void listen(Store& store, const std::string& prefix, const std::function<void(bool)>& answer) {
  uint64_t version = 0;
  while (true) {
    const auto news = store.watch(prefix, version, Deadline::after(kForEver));
    version = news.version;
    for (const auto& [key, value] : news.changes) {
      if (key == prefix + kEnd) return;
      if (key == prefix + kAsk) return answer(value == "stacks");
    }
  }
}

}  // namespace

Responder::Responder(const GroupSpec& spec, std::function<void(bool with_stacks)> answer) {
  if (!spec.store) return;
  const Topology topology = make_topology(spec.host_ids);
  const int host = topology.host_of[static_cast<size_t>(spec.rank)];
  if (topology.num_hosts() == 1 || topology.leader_of(host) != spec.rank) return;
  const std::string prefix = prefix_of(spec, host);
  stop_ = [store = spec.store, prefix] {
    store->set(prefix + kEnd, "", Deadline::after(kStoreLimit));
  };
  const auto body = [store = spec.store, prefix, answer = std::move(answer)] {
    try {
      listen(*store, prefix, answer);
    } catch (const std::exception& error) {  // the job is over, or nobody could ask any more
      log_debug(fmt::format("nobody speaks for this host any more: {}", error.what()));
    }
  };
  thread_ = start_quiet_thread(body);
}

Responder::~Responder() {
  if (!thread_.joinable()) return;
  try {
    stop_();
    thread_.join();
  } catch (const std::exception&) {
    // The store does not answer, so the thread may not hear of it. It keeps what it uses.
    thread_.detach();
  }
}

void Responder::ask(const GroupSpec& spec, int host, bool with_stacks, Deadline deadline) {
  spec.store->set(prefix_of(spec, host) + kAsk, with_stacks ? "stacks" : "", deadline);
}

}  // namespace lockstep
