#include "lockstep/comm/flight/hang_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/comm/topology.h"
#include "lockstep/world/lives.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kWatchPause = 200ms;
/// Limits a thousand ranks of one host to some 4,000 looks per second.
constexpr auto kWatchPausePerRank = std::chrono::microseconds(250);
/// A look may be late by this because the cores are busy; beyond it the process stood still.
constexpr auto kWatchLate = 500ms;
constexpr auto kWatchStoreLimit = 1s;
/// Time for other hosts to answer: all but frozen ones need milliseconds.
constexpr auto kOtherHosts = 500ms;
/// The same while explain() waits for them: the group error is due within a second.
constexpr auto kOtherHostsAtEnd = 250ms;

Deadline watch_limit() {
  return Deadline::after(kWatchStoreLimit);
}

/// Leased by the rank that reports a hang: "4.1234", the rank and its call's number.
std::string claim_key(const GroupSpec& spec) {
  return spec.name + "/overdue";
}

int rank_of(const std::string& token, int size) {
  return static_cast<int>(parse_int(token.substr(0, token.find('.')), 0, size - 1, "rank"));
}

/// "rank 1 on 10.0.0.2, rank 3 on 10.0.0.3"; without addresses if all ranks share a host.
std::string named(const GroupSpec& spec, const std::vector<int>& world_ranks) {
  const bool several = make_topology(spec.host_ids).num_hosts() > 1;
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(world_ranks.size(), kMost); ++i) {
    const auto& all = spec.world_ranks;
    const auto at = std::find(all.begin(), all.end(), world_ranks[i]) - all.begin();
    text += fmt::format("{}rank {}", i == 0 ? "" : ", ", world_ranks[i]);
    if (several) text += " on " + spec.addresses[static_cast<size_t>(at)];
  }
  if (world_ranks.size() > kMost) text += fmt::format(" and {} more", world_ranks.size() - kMost);
  return text;
}

std::string hang_text(const GroupSpec& spec, const Overdue& call,
                      const std::vector<LastCall>& calls) {
  const int own = spec.world_ranks[static_cast<size_t>(spec.rank)];
  std::vector<int> late;
  if (call.sequence != 0) {
    late = late_for(calls, spec.world_ranks, call.sequence);
  } else if (call.peer >= 0 && call.peer < spec.size) {
    late = {spec.world_ranks[static_cast<size_t>(call.peer)]};
  }
  std::erase(late, own);
  std::string what = call.sequence != 0 ? "a collective" : "a transfer";
  std::vector<LastCall> theirs;
  for (const LastCall& one : calls) {
    if (one.rank == own && one.inside) what = one.what;
    if (std::find(late.begin(), late.end(), one.rank) != late.end()) theirs.push_back(one);
  }
  const auto text = fmt::format("rank {} has waited {:.1f} s in {}, longest before {:.1f} s, for ",
                                own, static_cast<double>(call.so_far_ns) / 1e9, what,
                                static_cast<double>(call.longest_ns) / 1e9);
  if (late.empty()) return text + "no late rank: data moves slowly, or a link is cut";
  return text + named(spec, late) + "; last operations: " + last_calls_text(theirs, late);
}

/// The ranks that hold up the rank of `spec`, found in `calls` of `ranks`. `peer`: the rank for
/// whose message it has waited for `waited_ns`, or HangWatch::kAnyPeer.
HeldUp held_up_in(const GroupSpec& spec, const std::vector<RankCalls>& calls,
                  const std::vector<int>& ranks, int peer, int64_t waited_ns) {
  if (peer >= 0 && peer < spec.size) {
    const int awaited = spec.world_ranks[static_cast<size_t>(peer)];
    return held_up_by(calls, ranks, awaited, ns_since_1970() - waited_ns);
  }
  const int rank = spec.world_ranks[static_cast<size_t>(spec.rank)];
  return held_up(calls, ranks, rank, recorded_name(spec.name));
}

/// Collects the calls of the ranks of `widest` and returns the result of `find` on them; nothing if
/// that fails. `question`: unique among those of this rank.
HeldUp ask_all(const GroupSpec& spec, const std::string& question, const GroupSpec& widest,
               std::chrono::milliseconds patience,
               const std::function<HeldUp(const std::vector<RankCalls>& calls)>& find) {
  try {
    const int rank = spec.world_ranks[static_cast<size_t>(spec.rank)];
    const auto token = fmt::format("{}.{}", rank, question);
    const auto operations = operations_of_all(widest, token, patience);
    if (make_topology(widest.host_ids).num_hosts() > 1) remove_operations(widest, token);
    return find(operations.calls);
  } catch (const std::exception& error) {
    log_debug(fmt::format("{}: the ranks that hold up others are unknown: {}",
                          spec.rank_name(spec.rank), error.what()));
    return {};
  }
}

/// The pause between two looks.
std::chrono::nanoseconds pause_of(const FlightRing& ring) {
  return std::max<std::chrono::nanoseconds>(kWatchPause,
                                            ring.memory().header.size * kWatchPausePerRank);
}

int64_t timeout_ns(const GroupSpec& spec) {
  return std::chrono::nanoseconds(spec.timeout).count();
}

}  // namespace

HangWatch::HangWatch(FlightRing& ring)
    : ring_(ring), patience_(std::chrono::nanoseconds(pause_of(ring) + kWatchLate).count()) {}

std::shared_ptr<HangWatch> HangWatch::of(FlightRing& ring) {
  static Mutex mutex;
  static auto& watches = *new std::map<FlightRing*, std::weak_ptr<HangWatch>>;
  const MutexLock lock(mutex);
  auto& known = watches[&ring];
  auto watch = known.lock();
  if (watch && watch->generation_ == fork_generation()) return watch;
  watch.reset(new HangWatch(ring));
  known = watch;
  return watch;
}

HangWatch::~HangWatch() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void HangWatch::add(uint16_t group, const GroupSpec& spec) {
  if (ring_.fd() < 0 || spec.size == 1 || !spec.store || group == kNoFlightGroup) return;
  MutexLock lock(mutex_);
  groups_[group] = std::make_shared<const GroupSpec>(spec);
  if (!thread_.joinable()) thread_ = start_thread_with_signals_blocked([this] { run(); });
}

void HangWatch::remove(uint16_t group) {
  MutexLock lock(mutex_);
  if (groups_.erase(group) > 0) ended_.push_back(group);
}

Error HangWatch::explain(const GroupSpec& spec, const Error& error, int peer) {
  if (error.code() != ErrorCode::kTimeout) return error;
  const auto widest = widest_with(spec);
  const auto find = [&](const std::vector<RankCalls>& calls) {
    auto found = held_up_in(spec, calls, widest->world_ranks, peer, timeout_ns(spec));
    // If the message waits for no other rank, the error may be of the call of another rank.
    if (peer == kAnyPeer || !found.path.empty()) return found;
    return held_up_in_collective(calls, widest->world_ranks, recorded_name(spec.name));
  };
  const auto question = fmt::format("ended.{}", ++explained_);
  const auto why = to_string(ask_all(spec, question, *widest, kOtherHostsAtEnd, find));
  return why.empty() ? error : Error(error.code(), why + "; " + error.what());
}

std::string HangWatch::why_held_up(const GroupSpec& spec, int peer) {
  const auto widest = widest_with(spec);
  const auto question = fmt::format("ended.{}", ++explained_);
  const auto found = ask_all(spec, question, *widest, kOtherHostsAtEnd, [&](const auto& calls) {
    return held_up_in(spec, calls, widest->world_ranks, peer, timeout_ns(spec));
  });
  return found.roots.empty() ? "" : to_string(found);
}

/// The largest group of this rank; of several, that of `spec`.
std::shared_ptr<const GroupSpec> HangWatch::widest_with(const GroupSpec& spec) {
  MutexLock lock(mutex_);
  auto widest = std::make_shared<const GroupSpec>(spec);
  for (const auto& [number, group] : groups_) {
    if (group->size > widest->size) widest = group;
  }
  return widest;
}

void HangWatch::run() {
  const auto pause = pause_of(ring_);
  MutexLock lock(mutex_);
  while (!ending_) {
    const auto next = Deadline::after(pause);
    while (!ending_ && !next.passed()) changed_.wait_until(lock, next.when());
    const Groups groups = groups_;
    for (const uint16_t group : std::exchange(ended_, {})) patience_.forget(group);
    lock.unlock();
    look(groups);
    lock.lock();
  }
}

void HangWatch::look(const Groups& groups) {
  if (patience_.is_idle(ring_.memory().header.events_begun.load())) {
    patience_.rest(monotonic_ns());
    return take_back();
  }
  image_.resize(sizeof(FlightMemory));
  const ssize_t got = ::pread(ring_.fd(), image_.data(), image_.size(), 0);
  if (got != static_cast<ssize_t>(image_.size())) return;
  const auto& memory = *reinterpret_cast<const FlightMemory*>(image_.data());
  const auto overdue = patience_.look(memory, monotonic_ns());
  take_back();
  for (const Overdue& call : overdue) {
    const auto group = groups.find(call.group);
    if (group == groups.end()) continue;
    try {
      report(group->second, call);
    } catch (const std::exception& error) {
      log_debug(fmt::format("{} waits, for unknown ranks: {}",
                            group->second->rank_name(group->second->rank), error.what()));
    }
  }
}

void HangWatch::report(const std::shared_ptr<const GroupSpec>& spec, const Overdue& call) {
  const bool tells_already = std::any_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
    return claim.spec->name == spec->name;
  });
  if (tells_already) return;
  const std::string token = fmt::format("{}.{}", spec->rank, call.number);
  // Leased, so that another rank may report the next hang if this process dies meanwhile.
  claims_.push_back({spec, call.number, token});  // also if the store answers too late
  if (spec->store->set_with_lease(claim_key(*spec), token, kLifeTtl, watch_limit())) {
    const auto operations = operations_of_all(*spec, token, kOtherHosts);
    const auto why = why_overdue(*spec, call, operations);
    log_warn(hang_text(*spec, call, operations.last) + (why.empty() ? "" : "; " + why));
    return;
  }
  claims_.pop_back();
  const auto claim = spec->store->try_get(claim_key(*spec), watch_limit());
  if (!claim) return;  // its call has just ended
  // The reporting rank may have queried a rank of this host that cannot answer.
  const int teller = rank_of(*claim, spec->size);
  const auto& hosts = spec->host_ids;
  const bool is_here = hosts[static_cast<size_t>(teller)] == hosts[static_cast<size_t>(spec->rank)];
  if (!is_here) write_operations(*spec, *claim);
}

/// `operations`: of the ranks of `spec`; the ranks of a wider group are queried besides.
std::string HangWatch::why_overdue(const GroupSpec& spec, const Overdue& call,
                                   const RankOperations& operations) {
  const auto widest = widest_with(spec);
  const int peer = call.sequence == 0 ? call.peer : kAnyPeer;
  if (widest->world_ranks == spec.world_ranks) {
    return to_string(held_up_in(spec, operations.calls, spec.world_ranks, peer, call.so_far_ns));
  }
  const auto question = fmt::format("waits.{}", call.number);
  return to_string(ask_all(spec, question, *widest, kOtherHosts, [&](const auto& calls) {
    return held_up_in(spec, calls, widest->world_ranks, peer, call.so_far_ns);
  }));
}

/// Once a reported call has ended, the next hang may be reported. A stalled store is tried again.
void HangWatch::take_back() {
  std::erase_if(claims_, [this](const Claim& claim) {
    if (patience_.is_open(claim.number)) return false;
    try {
      remove_operations(*claim.spec, claim.token);
      claim.spec->store->erase(claim_key(*claim.spec), watch_limit());
    } catch (const Error& error) {
      log_debug(fmt::format("the store keeps the report of a late rank: {}", error.what()));
      return error.code() != ErrorCode::kTimeout;
    }
    return true;
  });
}

}  // namespace lockstep::inline internal
