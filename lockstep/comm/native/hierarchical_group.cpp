#include "lockstep/comm/native/hierarchical_group.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/bootstrap/members.h"
#include "lockstep/comm/creation/making.h"
#include "lockstep/comm/creation/rank_groups.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/native/tcp/reception.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/lives.h"

namespace lockstep::inline internal {
namespace {

/// If a reply from the same switch may come within this time, sleeping would cost more.
constexpr auto kSpin = std::chrono::microseconds(30);
/// How long the store may take to accept or return a group error.
constexpr auto kGroupErrorLimit = 5s;
/// How long it may take to tell whether a peer lives, in a wait for the peer.
constexpr auto kLifeLimit = 500ms;

/// By rank of the group; returns when all ranks have come. Exchanged once for all groups split from
/// the same one: see GroupSpec.
std::vector<std::string> endpoints_of(const GroupSpec& spec, const tcp::Reception& reception,
                                      Deadline deadline) {
  std::vector<std::string> endpoints;
  if (spec.endpoints->empty()) {
    endpoints = exchange_endpoints(spec, reception.endpoint(), deadline);
    for (size_t rank = 0; rank < endpoints.size(); ++rank) {
      spec.endpoints->emplace(spec.world_ranks[rank], endpoints[rank]);
    }
    return endpoints;
  }
  await_members(spec, deadline);
  for (const int rank : spec.world_ranks) endpoints.push_back(spec.endpoints->at(rank));
  return endpoints;
}

/// See Peers::Group::why_silent.
std::string why_silent(Store& store, int world_rank) {
  try {
    const auto limit = Deadline::after(kLifeLimit);
    if (dead_ranks(store, {world_rank}, limit).empty()) return "";
    if (has_left(store, world_rank, limit)) {
      return fmt::format("rank {} left: it had ended all its process groups in good order",
                         world_rank);
    }
    return fmt::format("rank {} {}", world_rank, kDied);
  } catch (const Error& error) {
    log_debug(fmt::format("whether rank {} lives is unknown: {}", world_rank, error.what()));
    return "";
  }
}

/// Other hosts' ranks that carry the same slice. All collectives use these connections, except some
/// that only move data.
std::vector<int> fellow_carriers(const HierarchicalPlan& plan) {
  std::vector<int> ranks;
  for (int host = 0; host < plan.num_hosts() && plan.local < plan.slices; ++host) {
    if (host != plan.host) ranks.push_back(plan.carrier(host, plan.local));
  }
  return ranks;
}

/// Exchanges the ranks' endpoints, or only their arrival; connects no ranks. If it fails, this
/// host's other ranks receive the reason, because they may have nothing to wait for here.
std::unique_ptr<GroupImpl> make(const GroupSpec& spec, const HierarchicalPlan& plan,
                                std::unique_ptr<ShmGroup> shm, Deadline deadline) {
  std::unique_ptr<tcp::Peers> for_pipes;
  std::unique_ptr<tcp::Peers> for_links;
  tcp::Peers::Group group;
  const auto pipes_name = spec.name + "/pipes";
  const auto links_name = spec.name + "/links";
  try {
    group.reception =
        spec.rank_groups->reception(spec.addresses[static_cast<size_t>(spec.rank)], spec.secret);
    group.secret = spec.secret;
    group.rank = spec.rank;
    group.world_ranks = spec.world_ranks;
    group.why_silent = [store = spec.store](int rank) { return why_silent(*store, rank); };
    group.endpoints = endpoints_of(spec, *group.reception, deadline);
    group.name = pipes_name;
    for_pipes = std::make_unique<tcp::Peers>(group);
    group.name = links_name;
    for_links = std::make_unique<tcp::Peers>(group);
  } catch (const Error& error) {
    const Error cause = unmade(spec, error);
    shm->fail(cause);
    // Only after it is written: a rank whose connection ends looks for it.
    for (const auto& name : {pipes_name, links_name}) {
      if (group.reception) tcp::Peers::forgo(*group.reception, spec.secret, name);
    }
    throw cause;
  }
  return std::make_unique<HierarchicalGroup>(spec, plan, std::move(shm), std::move(for_links),
                                             std::move(for_pipes));
}

}  // namespace

std::unique_ptr<GroupImpl> make_hierarchical_group(const GroupSpec& spec, Deadline deadline) {
  const auto plan = make_hierarchical_plan(make_topology(spec.host_ids), spec.rank);
  auto part = spec.subset(plan.ranks_of(plan.host), fmt::format("/host{}", plan.host));
  part.whole = spec.name;
  return make(spec, plan, make_shm_group(part, deadline), deadline);
}

HierarchicalGroup::HierarchicalGroup(const GroupSpec& spec, const HierarchicalPlan& plan,
                                     std::unique_ptr<ShmGroup> shm,
                                     std::unique_ptr<tcp::Peers> for_links,
                                     std::unique_ptr<tcp::Peers> for_pipes)
    : spec_(spec),
      plan_(plan),
      own_piece_sum_(own_piece_nodes(plan), plan.size),
      detection_(spec_),
      local_(std::move(shm), plan.local, plan.num_local()),
      fellows_(fellow_carriers(plan)),
      for_links_(std::move(for_links)),
      for_pipes_(std::move(for_pipes)),
      links_(
          spec.rank, std::vector<UniqueFd>(static_cast<size_t>(spec.size)),
          [this](int rank) { return spec_.rank_name(rank); },
          spec.world_ranks[static_cast<size_t>(spec.rank)], detection_.alarm(), for_links_.get()),
      pipes_(
          *for_pipes_, spec.size, [this](int rank) { return spec_.rank_name(rank); },
          spec.world_ranks[static_cast<size_t>(spec.rank)]) {
  local_.shm().set_alarm(detection_.alarm());
  static const int kCores = cores_of_host();  // it reads the files of the cgroups
  if (kCores >= plan_.num_local()) spin_ = kSpin;
}

HierarchicalGroup::~HierarchicalGroup() = default;

int HierarchicalGroup::local_of(int rank) const {
  return plan_.topology.local_rank_of[static_cast<size_t>(rank)];
}

void HierarchicalGroup::link(const OpHeader& header, Deadline deadline) {
  if (is_linked_) return;
  links_.meet(fellows_, header, deadline);
  is_linked_ = true;
}

void HierarchicalGroup::throw_agreed(const Error& error, Kind kind) {
  if (is_harmless(error.code())) throw Error(error);
  finds_group_error_ = true;
  MutexLock lock(mutex_);
  if (!group_error_) end_with(agreed_error(error, kind));
  throw Error(*group_error_);
}

void HierarchicalGroup::give_up(const Error& error, Deadline deadline) noexcept {
  const Error agreed = try_to_agree(spec_, error, deadline);
  // A thread that detects late ranks will see it in the store, and end the group.
  if (finds_group_error_) return;
  MutexLock lock(mutex_);
  if (!group_error_) end_with(agreed);
}

/// Only after it is written: a rank woken by the end of a connection looks for it.
void HierarchicalGroup::end_with(const Error& group_error) {
  group_error_ = group_error;
  links_.shut_down();
  for_links_->end();  // a rank in a first call with this one is connected, but not accepted
  pipes_.shut_down();
  local_.shm().fail(group_error);
}

/// By rank of the whole group.
std::vector<int> HierarchicalGroup::awaited() {
  std::vector<int> ranks = links_.awaited();
  const auto& here = plan_.ranks_of(plan_.host);
  for (const int local : local_.shm().awaited()) ranks.push_back(here[static_cast<size_t>(local)]);
  return ranks;
}

/// `error`, if it is the end of a connection with a rank that had nothing more to do.
std::optional<Error> HierarchicalGroup::told_of_left(const Error& error) const {
  const std::string text = error.what();
  const auto& lost = links_.awaited();
  if (!text.ends_with(tcp::kMostLikelyFailed) || lost.size() != 1) return std::nullopt;
  const int rank = spec_.world_ranks[static_cast<size_t>(lost.front())];
  if (!has_left(*spec_.store, rank, Deadline::after(kGroupErrorLimit))) return std::nullopt;
  return Error(
      error.code(),
      fmt::format("{}: it left, and had ended all its process groups in good order",
                  text.substr(0, text.size() - std::string_view(tcp::kMostLikelyFailed).size())));
}

/// The first error that any rank wrote: `error`, if no other came before.
Error HierarchicalGroup::agreed_error(const Error& error, Kind kind) {
  std::optional<Error> named;
  try {
    const bool timed_out = kind == Kind::kCollective && error.code() == ErrorCode::kTimeout;
    if (timed_out) named = detection_.name_the_late(error, awaited());
    if (kind == Kind::kCollective && !named) named = told_of_left(error);
  } catch (const Error& store_error) {
    log_debug(fmt::format("{}: the late ranks of group '{}' are unknown: {}",
                          spec_.rank_name(spec_.rank), spec_.name, store_error.what()));
  }
  return try_to_agree(spec_, named.value_or(error), Deadline::after(kGroupErrorLimit));
}

bool HierarchicalGroup::try_send(const void* data, const MessageHeader& message, int destination,
                                 CallSite site) {
  return is_here(destination) ? local_.shm().try_send(data, message, local_of(destination), site)
                              : pipes_.try_send(destination, message, data);
}

bool HierarchicalGroup::send(const void* data, const MessageHeader& message, int destination,
                             const Waiting& waiting) {
  bool sent = false;
  const auto body = [&] {
    sent = is_here(destination) ? local_.shm().send(data, message, local_of(destination), waiting)
                                : pipes_.send(destination, message, data, waiting.deadline);
  };
  guarded(body, Kind::kPointToPoint);
  return sent;
}

bool HierarchicalGroup::receive(int source, MessageSink& sink, const Waiting& waiting) {
  bool came = false;
  const auto body = [&] {
    came = is_here(source) ? local_.shm().receive(local_of(source), sink, waiting)
                           : pipes_.receive(source, sink, waiting.deadline, spin_of(waiting));
  };
  guarded(body, Kind::kPointToPoint);
  return came;
}

}  // namespace lockstep::inline internal
