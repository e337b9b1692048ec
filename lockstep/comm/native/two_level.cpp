#include "lockstep/comm/native/two_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/log.h"
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
                             spec.size,
                             spec.world_ranks};
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
      search_(spec_),
      local_(std::move(shm), plan.local, plan.num_local()),
      links_(
          spec.rank, std::move(links), [this](int rank) { return spec_.rank_name(rank); },
          spec.world_ranks[static_cast<size_t>(spec.rank)], search_.alarm()),
      pipes_(
          std::move(pipes), [this](int rank) { return spec_.rank_name(rank); },
          spec.world_ranks[static_cast<size_t>(spec.rank)]) {
  local_.shm().set_alarm(search_.alarm());
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

/// By rank of the whole group.
std::vector<int> TwoLevelGroup::awaited() {
  std::vector<int> ranks = links_.awaited();
  const auto& here = plan_.ranks_of(plan_.host);
  for (const int local : local_.shm().awaited()) ranks.push_back(here[static_cast<size_t>(local)]);
  return ranks;
}

/// The first error that any rank wrote down: `error`, if nobody did before.
Error TwoLevelGroup::verdict(const Error& error, Kind kind) {
  try {
    const bool searches = kind == Kind::kCollective && error.code() == ErrorCode::kTimeout;
    const Error named = searches ? search_.name_the_late(error, awaited()) : error;
    return agree_on_verdict(spec_, named, Deadline::after(kVerdictLimit));
  } catch (const Error& store_error) {
    log_debug(fmt::format("{}: the verdict of group '{}' stays here: {}",
                          spec_.rank_name(spec_.rank), spec_.name, store_error.what()));
  }
  return error;
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
