#include "lockstep/comm/native/two_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/log.h"
#include "lockstep/comm/native/cut.h"
#include "lockstep/comm/native/tcp/connect.h"
#include "lockstep/comm/native/two_level_group.h"
#include "lockstep/comm/verdict.h"

namespace lockstep {
namespace {

/// While a reply from the same switch may come within this time, sleeping would cost more.
constexpr auto kSpin = std::chrono::microseconds(30);
/// How long the store may take to take or tell a verdict.
constexpr auto kVerdictLimit = 5s;

std::vector<UniqueFd> connect(const GroupSpec& spec, const char* purpose,
                              const std::vector<int>& peers, Deadline deadline) {
  const tcp::Rendezvous self{*spec.store,
                             spec.name + "/" + purpose,
                             spec.addresses[static_cast<size_t>(spec.rank)],
                             spec.secret,
                             spec.rank,
                             spec.size};
  auto sockets = tcp::connect_peers(self, peers, deadline);
  for (const auto& socket : sockets) {
    if (socket) tcp::tune_socket(socket.get(), spec.timeout);
  }
  return sockets;
}

std::vector<int> ranks_elsewhere(const TwoLevelPlan& plan) {
  std::vector<int> ranks;
  for (int rank = 0; rank < plan.size; ++rank) {
    if (plan.topology.host_of[static_cast<size_t>(rank)] != plan.host) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::unique_ptr<GroupImpl> make_two_level_group(const GroupSpec& spec, Deadline deadline) {
  const auto plan = make_two_level_plan(make_topology(spec.host_ids), spec.rank);
  const auto name = fmt::format("/host{}", plan.host);
  auto shm = make_shm_group(spec.subset(plan.ranks_of(plan.host), name), deadline);
  auto links = connect(spec, "links", ranks_elsewhere(plan), deadline);
  auto pipes = connect(spec, "pipes", ranks_elsewhere(plan), deadline);
  return std::make_unique<TwoLevelGroup>(spec, plan, std::move(shm), std::move(links),
                                         std::move(pipes));
}

TwoLevelGroup::TwoLevelGroup(const GroupSpec& spec, const TwoLevelPlan& plan,
                             std::unique_ptr<ShmGroup> shm, std::vector<UniqueFd> links,
                             std::vector<UniqueFd> pipes)
    : spec_(spec),
      plan_(plan),
      own_piece_sum_(own_piece_nodes(plan), plan.size),
      local_(std::move(shm), plan.local, plan.num_local()),
      links_(
          spec.rank, std::move(links), [this](int rank) { return spec_.rank_name(rank); },
          spec.world_ranks[static_cast<size_t>(spec.rank)]),
      pipes_(
          std::move(pipes), [this](int rank) { return spec_.rank_name(rank); },
          spec.world_ranks[static_cast<size_t>(spec.rank)]) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores >= plan_.num_local()) spin_ = kSpin;
}

TwoLevelGroup::~TwoLevelGroup() = default;

int TwoLevelGroup::local_of(int rank) const {
  return plan_.topology.local_rank_of[static_cast<size_t>(rank)];
}

void TwoLevelGroup::throw_agreed(const Error& error, Kind kind) {
  if (is_harmless(error.code())) throw Error(error);
  MutexLock lock(mutex_);
  if (!verdict_) {
    verdict_ = verdict(error, kind);
    // Only now: who is woken by the end of a connection finds the verdict.
    links_.shut_down();
    pipes_.shut_down();
    local_.shm().fail(*verdict_);
  }
  throw Error(*verdict_);
}

/// The first error that any rank wrote down: `error`, if nobody did before.
Error TwoLevelGroup::verdict(const Error& error, Kind kind) {
  try {
    const bool searches = kind == Kind::kCollective && error.code() == ErrorCode::kTimeout;
    const Error named = searches ? name_the_late(error) : error;
    return agree_on_verdict(spec_, named, Deadline::after(kVerdictLimit));
  } catch (const Error& store_error) {
    log_debug(fmt::format("{}: the verdict of group '{}' stays here: {}",
                          spec_.rank_name(spec_.rank), spec_.name, store_error.what()));
  }
  return error;
}

/// The rank that this one waited for may itself have waited. Every rank that waits says so, and for
/// whom, when its time is over; who does not say it within a moment is late.
Error TwoLevelGroup::name_the_late(const Error& error) {
  Store& store = *spec_.store;
  const std::string waited = spec_.name + "/waited/";
  store.set(waited + std::to_string(spec_.rank), encode_ranks(links_.awaited()),
            Deadline::after(kVerdictLimit));
  const auto key = verdict_key(spec_);
  try {
    const auto grace = std::clamp<std::chrono::milliseconds>(spec_.timeout / 10, 200ms, 500ms);
    store.wait(std::span(&key, 1), Deadline::after(grace));
    return error;  // somebody has found out
  } catch (const Error& nobody) {
    if (nobody.code() != ErrorCode::kTimeout) throw;
  }
  std::vector<int> late;
  const auto here = store.list(waited, Deadline::after(kVerdictLimit));
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (std::find(here.begin(), here.end(), waited + std::to_string(rank)) == here.end())
      late.push_back(rank);
  }
  if (late.empty()) return name_the_cut(error);
  return Error(ErrorCode::kTimeout,
               fmt::format("{} did not come in time ({} says: {})", spec_.rank_names(late),
                           spec_.rank_name(spec_.rank), error.what()));
}

/// All ranks wait, so it is not a rank that is late. Two that wait for each other have no
/// connection any more; the rank with the most of those is named first.
Error TwoLevelGroup::name_the_cut(const Error& error) {
  std::vector<std::vector<int>> awaited(static_cast<size_t>(spec_.size));
  for (int rank = 0; rank < spec_.size; ++rank) {
    const auto key = fmt::format("{}/waited/{}", spec_.name, rank);
    awaited[static_cast<size_t>(rank)] =
        decode_ranks(spec_.store->get(key, Deadline::after(kVerdictLimit)));
  }
  const Cut cut = widest_cut(awaited);
  if (cut.rank < 0) return error;
  return Error(ErrorCode::kTimeout,
               fmt::format("all ranks wait, but nothing passes between {} and {} ({} says: {})",
                           spec_.rank_name(cut.rank), spec_.rank_names(cut.from),
                           spec_.rank_name(spec_.rank), error.what()));
}

void TwoLevelGroup::send(const void* data, int64_t count, DType dtype, int destination, int tag,
                         const Waiting& waiting) {
  guarded(
      [&] {
        if (plan_.topology.host_of[static_cast<size_t>(destination)] == plan_.host) {
          local_.shm().send(data, count, dtype, local_of(destination), tag, waiting);
        } else {
          pipes_.send(destination, tag, data, count, dtype, waiting.deadline);
        }
      },
      Kind::kPointToPoint);
}

void TwoLevelGroup::recv(void* data, int64_t count, DType dtype, int source, int tag,
                         const Waiting& waiting) {
  guarded(
      [&] {
        if (plan_.topology.host_of[static_cast<size_t>(source)] == plan_.host) {
          local_.shm().recv(data, count, dtype, local_of(source), tag, waiting);
        } else {
          pipes_.recv(source, tag, data, count, dtype, waiting.deadline);
        }
      },
      Kind::kPointToPoint);
}

}  // namespace lockstep
