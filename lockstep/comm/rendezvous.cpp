#include "lockstep/comm/rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/base/version.h"
#include "lockstep/comm/backends.h"
#include "lockstep/comm/flight/ring.h"

namespace lockstep {
namespace {

using nlohmann::json;

/// With a rank, or as what those of all ranks begin with.
template <class Rank>
std::string card_key(const std::string& name, const Rank& rank) {
  return fmt::format("{}/rank/{}", name, rank);
}

/// Those whose key, `prefix` and the rank, is not there.
std::vector<int> missing_ranks(Store& store, const std::string& prefix, int size) {
  // One question, for all ranks ask it at the same time.
  const auto there = store.list(prefix, Deadline::after(5s));
  std::vector<int> missing;
  for (int rank = 0; rank < size; ++rank) {
    const bool came = std::binary_search(there.begin(), there.end(), prefix + std::to_string(rank));
    if (!came) missing.push_back(rank);
  }
  return missing;
}

Error nobody_came(Store& store, const std::string& name, int size) {
  const auto missing = missing_ranks(store, card_key(name, ""), size);
  if (missing.empty()) {
    return Error(ErrorCode::kTimeout, "creating the process group: rank 0 did not answer");
  }
  return Error(ErrorCode::kTimeout,
               fmt::format("creating the process group: {} {} did not come",
                           missing.size() == 1 ? "rank" : "ranks", rank_list(missing)));
}

/// What differs between two cards that must be equal, or "".
std::string disagreement(const json& first, const json& other, int rank) {
  for (const char* field : {"build", "backend"}) {
    if (first.at(field) == other.at(field)) continue;
    return fmt::format("creating the process group: rank 0 has {} '{}', rank {} has '{}'", field,
                       first.at(field).get<std::string>(), rank,
                       other.at(field).get<std::string>());
  }
  return "";
}

/// Rank 0's part: every rank's card in one list, or an error for all.
void publish_members(Store& store, const std::string& name, int size, Deadline deadline) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank) keys.push_back(card_key(name, rank));
  store.wait(keys, deadline);
  json members = json::array();
  std::string error;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(json::parse(store.get(keys[static_cast<size_t>(rank)], deadline)));
    if (error.empty()) error = disagreement(members.front(), members.back(), rank);
  }
  store.set(name + "/members", (error.empty() ? members : json(error)).dump(), deadline);
}

json exchange_cards(const World& world, const std::string& name, const json& card,
                    Deadline deadline) {
  auto& store = *world.store;
  store.set(card_key(name, world.rank), card.dump(), deadline);
  try {
    if (world.rank == 0) publish_members(store, name, world.size, deadline);
    return json::parse(store.get(name + "/members", deadline));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) throw nobody_came(store, name, world.size);
    throw;
  }
}

std::string place_of_recorder(const World& world) {
  const int fd = FlightRing::of_rank(world.rank, world.size).fd();
  return fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", ::getpid(), fd);
}

/// Opened while it lives, so that it can be read when it is dead.
std::shared_ptr<const UniqueFd> open_recorder(const std::string& path) {
  if (path.empty()) return nullptr;
  auto fd = std::make_shared<const UniqueFd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (*fd) return fd;
  log_debug(io_error("open " + path).what());
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
  if (world.size > 1) {
    members.front()["recorder"] = place_of_recorder(world);
    // Every rank counts its own groups, so the n-th of each rank are one group.
    const auto made = world.store->add(fmt::format("comm/groups/{}", world.rank), 1, deadline);
    spec.name = fmt::format("comm/{}", made);
    members = exchange_cards(world, spec.name, members.front(), deadline);
  }
  if (members.is_string()) throw Error(ErrorCode::kMismatch, members.get<std::string>());
  for (const auto& member : members) {
    spec.host_ids.push_back(member.at("host").get<std::string>());
    spec.addresses.push_back(member.at("address").get<std::string>());
    spec.devices.push_back(member.value("device", ""));
    const bool here = spec.host_ids.back() == world.host_id;
    spec.recorders.push_back(here ? open_recorder(member.value("recorder", "")) : nullptr);
  }
  return spec;
}

void await_members(const GroupSpec& spec, Deadline deadline) {
  if (spec.size == 1) return;  // and may have no store
  const std::string prefix = spec.name + "/came/";
  std::vector<std::string> keys;
  for (int rank = 0; rank < spec.size; ++rank) keys.push_back(prefix + std::to_string(rank));
  spec.store->set(keys[static_cast<size_t>(spec.rank)], "", deadline);
  try {
    spec.store->wait(keys, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    const auto missing = missing_ranks(*spec.store, prefix, spec.size);
    if (missing.empty()) return;  // the last one came just now
    throw Error(ErrorCode::kTimeout, fmt::format("creating the process group: {} did not come",
                                                 spec.rank_names(missing)));
  }
}

}  // namespace lockstep
