#include "lockstep/comm/bootstrap/members.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/bootstrap/sharing.h"
#include "lockstep/comm/creation/making.h"
#include "lockstep/comm/creation/rank_groups.h"
#include "lockstep/comm/device_name.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/native/shm/fd_server.h"
#include "lockstep/comm/rank_answers.h"
#include "lockstep/error.h"
#include "lockstep/store/missing_ranks.h"
#include "lockstep/version.h"

namespace lockstep::inline internal {
namespace {

using nlohmann::json;

/// After this time the missing ranks are logged, and then ever less often.
constexpr std::chrono::seconds kSayAfter = 5s;
constexpr std::chrono::seconds kSayAtLeast = 60s;
/// For the search for missing ranks, also after the deadline.
constexpr std::chrono::seconds kSearchTime = 5s;

/// With a rank: its key; with "": the prefix of all ranks' keys.
template <class Rank>
std::string card_key(const std::string& name, const Rank& rank) {
  return fmt::format("{}/rank/{}", name, rank);
}

/// The key that holds the ranks that do not share memory with their host, and why.
std::string apart_key(const GroupSpec& spec) {
  return spec.name + "/apart";
}

/// True on the last of `size` ranks that call it equally often with the same `name`.
bool comes_last(Store& store, const std::string& name, int size, Deadline deadline) {
  const std::string counter = name + "/through";
  if (store.add(counter, 1, deadline) < size) return false;
  store.erase(counter, deadline);
  return true;
}

Error nobody_came(Store& store, const std::string& name, int size) {
  const auto members = name + "/members";
  if (store.check(std::span(&members, 1), Deadline::after(kSearchTime))) {  // and no card remains
    return Error(ErrorCode::kTimeout, "creating the process group: not all ranks answered");
  }
  const auto missing = missing_ranks(store, card_key(name, ""), size, Deadline::after(kSearchTime));
  if (missing.empty()) {
    return Error(ErrorCode::kTimeout, "creating the process group: rank 0 did not answer");
  }
  return Error(ErrorCode::kTimeout,
               fmt::format("creating the process group: {} did not come", rank_words(missing)));
}

/// The difference between two cards that must be equal, or "".
std::string disagreement(const json& first, const json& other, int rank) {
  for (const char* field : {"build", "backend"}) {
    if (first.at(field) == other.at(field)) continue;
    return fmt::format("creating the process group: rank 0 has {} '{}', rank {} has '{}'", field,
                       first.at(field).get<std::string>(), rank,
                       other.at(field).get<std::string>());
  }
  return "";
}

/// False: after `time`, which ends before the deadline, some of the `keys` that `ranks` write are
/// missing.
bool come_within(Making& making, const std::vector<std::string>& keys,
                 const std::vector<int>& ranks, Deadline deadline, std::chrono::seconds time) {
  const auto slice = deadline.at_most(time);
  try {
    making.wait(keys, ranks, slice);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout || !slice.passed() || deadline.passed()) throw;
    return false;
  }
}

void say_missing(const GroupSpec& spec, const std::string& prefix) {
  try {
    const auto missing =
        missing_ranks(*spec.store, prefix, spec.size, Deadline::after(kSearchTime));
    if (!missing.empty()) log_info("waits for " + spec.rank_names(missing) + " to come");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;  // a stalled store may answer later
  }
}

/// The values that all ranks of `spec` write under `prefix` and their rank, by rank.
std::vector<std::string> gather(const GroupSpec& spec, const std::string& prefix, Making& making,
                                Deadline deadline) {
  std::vector<std::string> keys;
  std::vector<int> ranks(static_cast<size_t>(spec.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  for (const int rank : ranks) keys.push_back(prefix + std::to_string(rank));
  auto patience = kSayAfter;
  while (!come_within(making, keys, ranks, deadline, patience)) {
    say_missing(spec, prefix);
    patience = std::min(2 * patience, kSayAtLeast);
  }
  std::vector<std::string> by_rank;
  for (auto& text : answers_by_rank(*spec.store, prefix, spec.size, deadline)) {
    if (!text) throw Error(ErrorCode::kTimeout, "the store did not answer in time");
    by_rank.push_back(std::move(*text));
  }
  return by_rank;
}

/// Rank 0's part: every rank's card in one list, or an error for all.
void publish_members(const GroupSpec& spec, Making& making, Deadline deadline) {
  json members = json::array();
  std::string error;
  for (const auto& card : gather(spec, card_key(spec.name, ""), making, deadline)) {
    members.push_back(json::parse(card));
    const int rank = static_cast<int>(members.size()) - 1;
    if (error.empty()) error = disagreement(members.front(), members.back(), rank);
  }
  spec.store->set(spec.name + "/members", (error.empty() ? members : json(error)).dump(), deadline);
}

/// Tries whether this rank shares memory with the first rank of its host, and reports the result to
/// all ranks.
void try_sharing(const GroupSpec& spec, const json& members, int leader, int num_tried,
                 Deadline deadline) {
  Store& store = *spec.store;
  const auto prefix = spec.name + "/alone/";
  if (leader != spec.rank) {
    const auto& card = members[static_cast<size_t>(leader)];
    const auto why = why_not_shared(card.value("sample", ""));
    if (!why.empty()) store.set(prefix + std::to_string(spec.rank), why, deadline);
  }
  if (!comes_last(store, spec.name + "/tried", num_tried, deadline)) return;
  std::map<int, std::string> apart;
  for (const auto& key : store.list(prefix, deadline)) {
    apart[std::stoi(key.substr(prefix.size()))] = store.get(key, deadline);
    store.erase(key, deadline);
  }
  store.set(apart_key(spec), json(apart).dump(), deadline);
}

/// Changes the hosts of `members` to the ranks that do share memory: see sharing.h. If each rank is
/// alone on its host, there is nothing to try.
void settle(const GroupSpec& spec, json& members, Making& making, Deadline deadline) {
  std::vector<std::string> hosts;
  for (const auto& member : members) hosts.push_back(member.at("host").get<std::string>());
  const auto leaders = leaders_of(hosts);
  std::map<int, int> num_led;
  for (const int leader : leaders) ++num_led[leader];
  int num_tried = 0;
  for (const auto& [leader, count] : num_led) num_tried += count > 1 ? count : 0;
  if (num_tried == 0) return;
  const int leader = leaders[static_cast<size_t>(spec.rank)];
  if (num_led[leader] > 1) try_sharing(spec, members, leader, num_tried, deadline);
  // Rank 0 reports a rank that died meanwhile: if each rank checked each other, that would take
  // size² keys.
  std::vector<int> awaited = {0};
  if (leader != 0) awaited.push_back(leader);
  if (spec.rank == 0) awaited = spec.world_ranks;
  const auto text = making.get(apart_key(spec), awaited, deadline);
  const auto told = json::parse(text).get<std::map<int, std::string>>();
  if (told.empty()) return;
  std::vector<int> apart;
  for (const auto& [rank, why] : told) apart.push_back(rank);
  if (spec.rank == 0) {
    log_warn(fmt::format("{} cannot share memory with the first rank of the host, and use TCP: {}",
                         spec.rank_names(apart), told.begin()->second));
  }
  const auto settled = settled_hosts(hosts, apart);
  for (size_t rank = 0; rank < settled.size(); ++rank) members[rank]["host"] = settled[rank];
}

json exchange_cards(const GroupSpec& spec, const json& card, Deadline deadline) {
  auto& store = *spec.store;
  store.set(card_key(spec.name, spec.rank), card.dump(), deadline);
  Making making(spec);
  try {
    if (spec.rank == 0) publish_members(spec, making, deadline);
    auto members = json::parse(making.get(spec.name + "/members", {0}, deadline));
    store.erase(card_key(spec.name, spec.rank), deadline);
    if (members.is_array()) settle(spec, members, making, deadline);
    if (comes_last(store, spec.name, spec.size, deadline)) {
      store.erase(spec.name + "/members", deadline);
      store.erase(apart_key(spec), deadline);
    }
    return members;
  } catch (const Error& error) {
    throw unmade(spec, error.code() == ErrorCode::kTimeout
                           ? nobody_came(store, spec.name, spec.size)
                           : error);
  }
}

std::string place_of_recorder(const World& world) {
  const int fd = FlightRing::of_rank(world.rank, world.size).fd();
  return fd < 0 ? "" : to_string(shm::to_remote(fd));
}

/// The recorders that groups of this process hold open.
class OpenRecorders {
 public:
  static OpenRecorders& of_process() {
    static auto& all = *new OpenRecorders;
    return all;
  }

  std::shared_ptr<const UniqueFd> find(const std::string& place) {
    const MutexLock lock(mutex_);
    const auto at = by_place_.find(place);
    return at == by_place_.end() ? nullptr : at->second.lock();
  }

  void add(const std::string& place, const std::shared_ptr<const UniqueFd>& recorder) {
    const MutexLock lock(mutex_);
    std::erase_if(by_place_, [](const auto& item) { return item.second.expired(); });
    by_place_[place] = recorder;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<const UniqueFd>> by_place_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Opens it while the rank lives, so that it can be read after its death; once for all groups.
std::shared_ptr<const UniqueFd> open_recorder(const std::string& place) {
  const auto remote = shm::parse_remote_fd(place);
  if (!remote) return nullptr;
  auto& known = OpenRecorders::of_process();
  // Without a server, whose name is random, another process may have taken that place since.
  if (auto fd = known.find(place); fd && remote->server != 0) return fd;
  auto fd = std::make_shared<const UniqueFd>(shm::open_remote(*remote, O_RDONLY));
  if (*fd) {
    known.add(place, fd);
    return fd;
  }
  log_debug(io_error("open the flight recorder at " + place).what());
  return nullptr;
}

}  // namespace

GroupSpec meet(const World& world, const std::string& backend, std::chrono::milliseconds timeout,
               Deadline deadline) {
  GroupSpec spec;
  spec.rank = world.rank;
  spec.size = world.size;
  spec.secret = world.secret;
  spec.store = world.store;
  spec.timeout = timeout;
  spec.world_ranks.resize(static_cast<size_t>(world.size));
  std::iota(spec.world_ranks.begin(), spec.world_ranks.end(), 0);
  json members = json::array();
  members.push_back({{"build", build_id()},
                     {"backend", backend},
                     {"host", world.host_id},
                     {"address", world.address},
                     {"device", name_device(world)}});
  std::optional<Sample> sample;  // until all ranks have tried it
  if (world.size > 1) {
    spec.fd_server = shm::start_fd_server();
    members.front()["sample"] = sample.emplace().place();
    members.front()["recorder"] = place_of_recorder(world);
    spec.rank_groups = RankGroups::of(world, deadline);
    spec.endpoints = std::make_shared<std::map<int, std::string>>();
    // Every rank counts its own groups, so the n-th of each rank are one group.
    const auto made = world.store->add(fmt::format("comm/groups/{}", world.rank), 1, deadline);
    spec.name = fmt::format("comm/{}", made);
    members = exchange_cards(spec, members.front(), deadline);
  }
  if (members.is_string()) throw Error(ErrorCode::kMismatch, members.get<std::string>());
  for (const auto& member : members) {
    spec.host_ids.push_back(member.at("host").get<std::string>());
    spec.addresses.push_back(member.at("address").get<std::string>());
    spec.devices.push_back(member.value("device", ""));
  }
  const auto& own_host = spec.host_ids[static_cast<size_t>(spec.rank)];
  for (size_t rank = 0; rank < spec.host_ids.size(); ++rank) {
    const bool here = spec.host_ids[rank] == own_host;
    const std::string place = members[rank].value("recorder", "");
    spec.recorders.push_back(here ? open_recorder(place) : nullptr);
  }
  return spec;
}

namespace {

/// Exchanges the texts `own` of all ranks of `spec` under the name `what`; returns them by rank.
/// Returns none if only the arrival of all ranks matters. A group calls it once per name.
std::vector<std::string> tell(const GroupSpec& spec, const std::string& what,
                              const std::string& own, bool is_of_use, Deadline deadline) {
  auto& store = *spec.store;
  const auto prefix = fmt::format("{}/{}/", spec.name, what);
  const auto all = fmt::format("{}/{}s", spec.name, what);
  const auto own_key = prefix + std::to_string(spec.rank);
  store.set(own_key, own, deadline);
  Making making(spec);
  try {
    if (spec.rank == 0) {
      auto texts = gather(spec, prefix, making, deadline);
      if (!is_of_use) texts.clear();
      store.set(all, json(texts).dump(), deadline);
    }
    auto told = json::parse(making.get(all, {0}, deadline)).get<std::vector<std::string>>();
    store.erase(own_key, deadline);
    if (comes_last(store, all, spec.size, deadline)) store.erase(all, deadline);
    return told;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    auto missing = missing_ranks(store, prefix, spec.size, Deadline::after(kSearchTime));
    if (missing.empty()) missing = {0};
    throw Error(ErrorCode::kTimeout, fmt::format("creating the process group: {} did not come",
                                                 spec.rank_names(missing)));
  }
}

}  // namespace

std::vector<std::string> exchange_endpoints(const GroupSpec& spec, const std::string& own,
                                            Deadline deadline) {
  return tell(spec, "port", own, true, deadline);
}

void await_members(const GroupSpec& spec, Deadline deadline) {
  if (spec.size == 1) return;  // which may have no store
  tell(spec, "arrival", "", false, deadline);
}

}  // namespace lockstep::inline internal
