#include "lockstep/process_group.h"
#include "lockstep/base/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

#include "lockstep/base/auth.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/literals.h"
#include "lockstep/comm/arguments.h"
#include "lockstep/comm/bootstrap/members.h"
#include "lockstep/comm/creation/making.h"
#include "lockstep/comm/flight/recorded_group.h"
#include "lockstep/comm/group/backend_autotuning.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/comm/group/group_core.h"
#include "lockstep/comm/topology.h"
#include "lockstep/error.h"
#include "lockstep/world/join/this_process.h"

namespace lockstep {
namespace {

/// A clock of nanoseconds in 64 bits has at least twice this range left.
constexpr auto kLongestTimeout = std::chrono::hours(24 * 365 * 100);

void check_members(const std::vector<int>& ranks, int size) {
  if (ranks.empty()) throw invalid("subgroup: no ranks given");
  std::set<int> seen;
  for (const int rank : ranks) {
    check_rank("subgroup", "a rank", rank, size);
    if (!seen.insert(rank).second) throw invalid(fmt::format("subgroup: rank {} twice", rank));
  }
}

/// The same on all members and for no other members; short, since it is part of keys in the store.
std::string subgroup_suffix(const std::vector<int>& ranks, int number) {
  std::string text;
  for (const int rank : ranks) text += fmt::format("{}.", rank);
  const Digest digest = hmac_sha256("subgroup", text);
  return fmt::format("/{}.{}", hex_digits(std::span(digest).first(6)), number);
}

const Backend& choose(const GroupSpec& spec, const std::string& name, Order order) {
  const Backend& first = choose_backend(name, spec);
  if (name != "auto" || order == Order::kFixed || first.for_devices) return first;
  return make_topology(spec.host_ids).num_hosts() == 1 ? first : backend_autotuning(spec);
}

std::shared_ptr<GroupCore> make_core(const GroupSpec& spec, const Backend& backend) {
  try {
    auto impl = backend.create(spec, Deadline::after(spec.timeout));
    return std::make_shared<GroupCore>(spec, std::string(backend.name),
                                       recorded(spec, std::move(impl)));
  } catch (const Error& error) {
    throw unmade(spec, error);
  }
}

/// A new group of `ranks` of that of `core`. `split_of`: as in GroupSpec.
std::shared_ptr<GroupCore> make_part(GroupCore& core, const std::vector<int>& ranks,
                                     const std::string& split_of) {
  core.check_not_destroyed();
  check_members(ranks, core.spec().size);
  auto spec = core.spec().subset(ranks, subgroup_suffix(ranks, core.count_subgroup(ranks)));
  spec.split_of = split_of;
  try {
    return make_core(spec, choose_backend(core.backend(), spec));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout || !split_of.empty()) throw;
    // Members that make another group are unknown here.
    throw Error(error.code(),
                fmt::format("{}; all members of a sub-group name the same ranks in the "
                            "same order, here {}",
                            error.what(), fmt::join(ranks, ", ")));
  }
}

/// With such a World each rank of a job is rank 0 of 1, and would train apart from the others.
void need_joined(const World& world) {
  if (world.store != nullptr) return;
  const std::string what =
      "this World has not joined its job; give ProcessGroup::create() World::join()";
  try {
    if (!is_launched()) return;
  } catch (const Error& error) {
    throw invalid(fmt::format("{}; {}", what, error.what()));
  }
  throw invalid(what);
}

}  // namespace

ProcessGroup ProcessGroup::create(const World& world, const GroupOptions& options) {
  if (world.size < 1 || world.rank < 0 || world.rank >= world.size) {
    throw invalid(fmt::format("rank {} of {} ranks", world.rank, world.size));
  }
  need_joined(world);
  if (options.timeout <= 0ms) throw invalid("GroupOptions::timeout must be positive");
  raise_soft_descriptor_limit();  // a rank has a connection to each rank with which it communicates
  const std::string asked = options.backend + (options.order == Order::kAny ? ", any order" : "");
  const auto timeout = std::min<std::chrono::milliseconds>(options.timeout, kLongestTimeout);
  const auto spec = meet(world, asked, timeout, Deadline::after(timeout));
  return ProcessGroup(make_core(spec, choose(spec, options.backend, options.order)));
}

int ProcessGroup::rank() const {
  return core_->spec().rank;
}

int ProcessGroup::size() const {
  return core_->spec().size;
}

const std::string& ProcessGroup::backend() const {
  return core_->backend();
}

const std::string& ProcessGroup::device() const {
  return core_->device();
}

int ProcessGroup::world_rank(int group_rank) const {
  check_rank("world_rank", "rank", group_rank, size());
  return core_->spec().world_ranks[static_cast<size_t>(group_rank)];
}

int ProcessGroup::group_rank(int world_rank) const {
  const auto& ranks = core_->spec().world_ranks;
  const auto at = std::find(ranks.begin(), ranks.end(), world_rank);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

int ProcessGroup::local_rank() const {
  const auto& hosts = core_->spec().host_ids;
  const auto own = hosts.begin() + rank();
  return static_cast<int>(std::count(hosts.begin(), own, *own));
}

int ProcessGroup::local_size() const {
  const auto& hosts = core_->spec().host_ids;
  return static_cast<int>(
      std::count(hosts.begin(), hosts.end(), hosts[static_cast<size_t>(rank())]));
}

ProcessGroup ProcessGroup::subgroup(const std::vector<int>& ranks) const {
  return ProcessGroup(make_part(*core_, ranks, ""));
}

std::optional<ProcessGroup> ProcessGroup::split(int color, int key, CallSite site) const {
  std::vector<ColorKey> all(static_cast<size_t>(size()));
  const ColorKey own{std::max(color, kNoColor), key};
  core_->blocking("split", site, [&](GroupImpl& impl, const Waiting& waiting) {
    impl.all_gather(&own, all.data(), 2, DType::kInt32, waiting);
  });
  const auto members = members_of_color(all, own.color);
  if (members.empty()) return std::nullopt;
  return ProcessGroup(make_part(*core_, members, core_->spec().name));
}

void ProcessGroup::destroy() {
  core_->destroy();
}

void ProcessGroup::barrier(CallSite site) {
  core_->blocking("barrier", site,
                  [](GroupImpl& impl, const Waiting& waiting) { impl.barrier(waiting); });
}

std::shared_ptr<SharedBuffer> ProcessGroup::allocate(int64_t bytes, CallSite site) {
  if (bytes < 0) throw invalid(fmt::format("allocate: {} bytes", bytes));
  std::shared_ptr<SharedBuffer> buffer;
  core_->blocking("allocate", site, [&](GroupImpl& impl, const Waiting& waiting) {
    buffer = impl.allocate(bytes, waiting);
  });
  return buffer;
}

}  // namespace lockstep
