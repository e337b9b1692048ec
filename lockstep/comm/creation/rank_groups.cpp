#include "lockstep/comm/creation/rank_groups.h"

#include <fmt/format.h>

#include <exception>
#include <map>
#include <string_view>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/native/tcp/reception.h"
#include "lockstep/world/lives.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kRegistrationLimit = 1s;
constexpr auto kSayLimit = 200ms;
constexpr auto kCauseLate = 300ms;
constexpr auto kCausePause = 10ms;
constexpr std::string_view kElsewhere = "in another group: ";

/// The cause of a group's end, as another group reports it.
Error cause_elsewhere(const Error& error) {
  const std::string text = error.what();
  const auto cause = text.substr(0, text.find(kLastOperations));
  return Error(error.code(),
               cause.starts_with(kElsewhere) ? cause : std::string(kElsewhere) + cause);
}

/// Of this process.
struct AllRankGroups {
  Mutex mutex;
  std::map<std::pair<Store*, int>, std::weak_ptr<RankGroups>> by_rank LOCKSTEP_GUARDED_BY(mutex);
};

AllRankGroups& all_rank_groups() {
  static auto& all = *new AllRankGroups;
  return all;
}

}  // namespace

std::shared_ptr<RankGroups> RankGroups::of(const World& world, Deadline deadline) {
  // This runs before any rank may wait for this rank, and without holding up the other ranks of
  // this process.
  show_life(*world.store, world.rank, deadline);
  std::shared_ptr<RankGroups> groups;
  {
    auto& all = all_rank_groups();
    const MutexLock lock(all.mutex);
    auto& known = all.by_rank[{world.store.get(), world.rank}];
    groups = known.lock();
    if (groups && groups->generation_ == fork_generation()) return groups;
    groups.reset(new RankGroups(world));
    known = groups;
  }
  return_to_life(*world.store, world.rank, deadline);
  return groups;
}

RankGroups::RankGroups(const World& world) : store_(world.store), rank_(world.rank) {
  thread_ = start_thread_with_signals_blocked([this] { keep_alive(); });
}

std::shared_ptr<tcp::Reception> RankGroups::reception(const std::string& address,
                                                      const std::string& secret) {
  const MutexLock lock(mutex_);
  if (!reception_) reception_ = std::make_shared<tcp::Reception>(rank_, address, secret);
  return reception_;
}

void RankGroups::add(Member* group) {
  const MutexLock lock(members_mutex_);
  members_.push_back(group);
}

void RankGroups::remove(Member* group) {
  const MutexLock lock(members_mutex_);
  std::erase(members_, group);
}

void RankGroups::lost(const Member* group, const std::vector<int>& ranks,
                      const Error& error) noexcept {
  const auto limit = Deadline::after(kRegistrationLimit);
  try {
    const auto cause = cause_elsewhere(error);
    const bool is_certain = std::string_view(cause.what()).ends_with(kDied);
    if (!is_certain && !any_died(ranks, limit)) return;
    say_given_up(cause.what(), limit.at_most(kSayLimit));
    const MutexLock lock(members_mutex_);
    for (Member* const member : members_) {
      if (member != group) member->give_up(cause, limit);
    }
  } catch (const std::exception& store_error) {
    log_debug(fmt::format("rank {}: the effect of a loss on other groups is unknown: {}", rank_,
                          store_error.what()));
  }
}

void RankGroups::say_given_up(const std::string& why, Deadline limit) const {
  try {
    give_up_life(*store_, rank_, why, limit);
  } catch (const std::exception& store_error) {
    log_debug(
        fmt::format("rank {}: the store lacks that it gave up: {}", rank_, store_error.what()));
  }
}

/// The store may learn of a death later than the group: an ending process frees its memory (90 ms
/// per GiB) before it closes connections.
bool RankGroups::any_died(const std::vector<int>& ranks, Deadline limit) const {
  const auto patience = Deadline::after(kCauseLate);
  while (true) {
    try {
      const auto dead = dead_ranks(*store_, ranks, limit);
      if (!dead.empty() && !has_left(*store_, dead.front(), limit)) return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kPeerLost) throw;
      return true;  // the store has ended with the rank or agent that served it
    }
    if (patience.passed()) return false;
    std::this_thread::sleep_for(kCausePause);
  }
}

RankGroups::~RankGroups() {
  if (generation_ != fork_generation()) {
    // The thread does not exist in the child; its state belongs to the parent.
    leave_to_parent(thread_);
    return;
  }
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
  // Unwinding is a failure too, and the other ranks must learn of it.
  if (!has_failed_ && std::uncaught_exceptions() == 0) say_left();
}

/// This runs while the process still sends heartbeats: a rank that finds it gone also finds this
/// entry.
void RankGroups::say_left() const noexcept {
  try {
    leave_life(*store_, rank_, Deadline::after(kSayLimit));
    auto& all = all_rank_groups();
    bool returned = false;  // another thread has made a group in the meantime
    {
      const MutexLock lock(all.mutex);
      returned = !all.by_rank[{store_.get(), rank_}].expired();
    }
    if (returned) return_to_life(*store_, rank_, Deadline::after(kSayLimit));
  } catch (const std::exception& error) {
    log_debug(fmt::format("rank {}: the store lacks that it left: {}", rank_, error.what()));
  }
}

void RankGroups::keep_alive() {
  MutexLock lock(mutex_);
  while (!ending_) {
    const auto slice = Deadline::after(kLifeTtl / 3);
    while (!ending_ && !slice.passed()) changed_.wait_until(lock, slice.when());
    if (ending_) return;
    lock.unlock();
    try {
      show_life(*store_, rank_, Deadline::after(kRegistrationLimit));
    } catch (const std::exception& error) {
      log_debug(fmt::format("rank {} cannot send a heartbeat: {}", rank_, error.what()));
    }
    lock.lock();
  }
}

}  // namespace lockstep::inline internal
