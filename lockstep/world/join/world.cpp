#include "lockstep/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "lockstep/base/addresses.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/counted.h"
#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/addresses.h"
#include "lockstep/world/assigned_world.h"
#include "lockstep/world/bootstrap/meet.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/detect/decision.h"
#include "lockstep/world/device.h"
#include "lockstep/world/fork_server/fork_server_message.h"
#include "lockstep/world/host_id.h"
#include "lockstep/world/join/this_process.h"
#include "lockstep/world/lives.h"
#include "lockstep/world/places.h"
#include "lockstep/world/torch_store.h"

namespace lockstep {
namespace {

/// Short, since a job may be short.
constexpr std::chrono::milliseconds kAwaitEvery{20};
constexpr std::chrono::milliseconds kLookEvery{250};
/// A rank 0 too busy to accept one connection is still there.
constexpr int kVainLooks = 4;
/// After this time the scheduler logs for whom it waits, once.
constexpr std::chrono::seconds kSilentAtFirst{5};
/// For the ranks to meet, if neither the program nor the launcher has a limit.
constexpr std::chrono::seconds kPatience{300};

bool somebody_is_at(const Endpoint& place) {
  return somebody_listens(place, Deadline::after(std::chrono::seconds(2)));
}

/// For MindSpore's scheduler, the process that its launchers start besides the ranks. Waits until a
/// server has listened at `place` and does so no more. Holds no connection, so that rank 0 does not
/// wait for it. A job may be over before this process begins, which then waits until the deadline.
/// Errors: kTimeout if nobody listens there before `deadline`.
void stay_for_ranks(const Endpoint& place, Deadline deadline) {
  const auto patience = Deadline::after(kSilentAtFirst);
  bool reported = false;
  while (!somebody_is_at(place)) {
    if (!reported && patience.passed()) {
      log_info(
          fmt::format("MindSpore's scheduler waits for rank 0 to serve the store at {}: rank 0 "
                      "has not come yet, or the job is over already",
                      to_string(place)));
      reported = true;
    }
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("MindSpore's scheduler waits for the ranks, but rank 0 does not "
                              "serve at {}",
                              to_string(place)));
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(kAwaitEvery, deadline.left()));
  }
  log_info(fmt::format("MindSpore's scheduler: the ranks meet at {}; it stays until they are done",
                       to_string(place)));
  for (int vain = 0; vain < kVainLooks; vain = somebody_is_at(place) ? 0 : vain + 1)
    std::this_thread::sleep_for(kLookEvery);
}

constexpr const char* kSecretKey = "world/secret";

Identity decided(const Decision& decision) {
  if (!decision.problem.empty()) throw Error(ErrorCode::kInvalidArgument, decision.problem);
  if (decision.identity.rank == 0) {
    for (const auto& warning : decision.warnings) log_warn(warning);
  }
  return decision.identity;
}

std::shared_ptr<Store> meet_where_told(const Environment& environment, Identity* id,
                                       Deadline deadline) {
  std::vector<std::string> addresses;
  if (id->rank == 0) addresses = own_addresses(environment, launcher_hosts(environment));
  if (id->rank == 0 && !id->master.host.empty())
    addresses.insert(addresses.begin(), id->master.host);
  return meet_by_exchange(open_exchange(*id, environment), addresses, id, deadline);
}

std::shared_ptr<Store> meet_at_rank_zero(Identity* id, Deadline deadline) {
  id->master.host = wait_for_name(id->master.host, deadline);
  if (id->rank == 0 && !is_own_address(id->master.host)) {
    log_warn(
        fmt::format("rank 0 serves the store on this host, but the others look for it at {}, "
                    "which is not an address of this host",
                    id->master.host));
  }
  return meet_torch_store(*id, deadline);
}

/// Fills in values that become known by meeting: id->master and id->secret.
std::shared_ptr<Store> meet_store(const Environment& environment, Identity* id, Deadline deadline) {
  switch (id->bootstrap) {
    case BootstrapMethod::kAlone:
      return make_memory_store();
    case BootstrapMethod::kAgent:
      // At any start of the ranks DNS may be away for a moment.
      id->master.host = wait_for_name(id->master.host, deadline);
      return connect_tcp_store(id->master, id->secret, deadline, id->wire);
    case BootstrapMethod::kRankZero:
      return meet_at_rank_zero(id, deadline);
    case BootstrapMethod::kExchange:
      return meet_where_told(environment, id, deadline);
  }
  throw Error(ErrorCode::kInternal, "a way to meet without a name");
}

/// Address by which the other ranks reach this one.
std::string own_address(const Environment& environment, const Identity& id) {
  if (!id.address.empty()) return id.address;
  if (id.num_nodes == 1 || is_loopback(id.master.host)) return "127.0.0.1";
  if (!wished_address(environment).variable.empty()) return own_addresses(environment, {}).front();
  auto address = local_address_towards(id.master.host);
  if (!is_loopback(address)) return address;
  // Many hosts resolve their own name to 127.0.1.1: then this is rank 0's host, whatever its
  // address.
  return own_addresses(environment, launcher_hosts(environment)).front();
}

void take_identity(const Identity& id, World* world) {
  world->rank = id.rank;
  world->size = id.size;
  world->local_rank = id.local_rank;
  world->local_size = id.local_size;
  world->node_rank = id.node_rank;
  world->num_nodes = id.num_nodes;
  world->restart_count = id.restart_count;
  world->launcher = id.launcher;
  world->job_id = id.job_id;
  world->secret = id.secret;
}

/// Our agents count the starts of a job's workers; other launchers only report failures.
int generation_of(const Environment& environment, const Identity& id) {
  const auto given = environment.find("LOCKSTEP_GENERATION");
  if (id.bootstrap != BootstrapMethod::kAgent || given == environment.end())
    return id.restart_count + 1;
  return static_cast<int>(parse_int(given->second, 1, 1 << 30, given->first));
}

void refuse_unforked(const Environment& environment) {
  if (environment.count(kForkServerFdVariable) == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "start_fork_server() is in this program, but was not called before World::join(): "
              "call it first in main()");
}

void report_threads(const World& world) {
  if (world.rank != 0 || world.size == 1) return;
  const int cores = usable_cores();
  const int sharers = ranks_on_my_cpus(world, usable_cpus());
  log_info(fmt::format("{}, {} each ({}, {} on {}; OMP_NUM_THREADS changes it)",
                       counted(world.size, "rank"), counted(world.threads, "thread"),
                       counted(cores, "core"), counted(sharers, "rank"),
                       sharers == world.local_size ? "this host" : "them"));
}

/// A store without a secret admits only this user's processes, by the kernel's report. Between
/// themselves the ranks need a secret that nobody can guess.
void agree_on_secret(Store& store, Identity* id, Deadline deadline) {
  if (!id->secret.empty() || id->size == 1) return;
  if (id->rank == 0) store.set(kSecretKey, make_job_secret(), deadline);
  id->secret = store.get(kSecretKey, deadline);
}

/// Two jobs meet at one place, such as jobs without a name in one folder: their ranks look alike.
[[noreturn]] void refuse_second(Store& store, int rank, bool by_folder, Deadline deadline) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("rank {} has come already: {}; another job meets at the same place, or "
                          "two processes have one rank: give each job a {} of its own",
                          rank, registered_process(store, rank, deadline),
                          by_folder ? "LOCKSTEP_RENDEZVOUS_DIR or MASTER_PORT" : "MASTER_PORT"));
}

/// Called first, so that a second process with this rank writes nothing. Not for an agent's ranks,
/// which the agent has started itself.
void show_own_life(Store& store, const Identity& id, Deadline deadline) {
  if (id.size == 1 || show_life(store, id.rank, deadline)) return;
  const bool by_folder = std::count(id.channels.begin(), id.channels.end(), Channel::kFolder) > 0;
  if (id.bootstrap != BootstrapMethod::kAgent) refuse_second(store, id.rank, by_folder, deadline);
}

/// The remaining steps once the rank is known.
World join_as(Identity id, const Environment& environment, Deadline deadline) {
  World world;
  world.generation = generation_of(environment, id);
  const auto token = environment.find("LOCKSTEP_GENERATION_TOKEN");
  if (id.bootstrap == BootstrapMethod::kAgent && token != environment.end())
    world.generation_token = token->second;
  world.host_id = this_host_id();
  world.store = with_prefix(meet_store(environment, &id, deadline),
                            fmt::format("generation_{}", world.generation));
  show_own_life(*world.store, id, deadline);
  agree_on_secret(*world.store, &id, deadline);
  if (has_unknown_place(id)) find_place(*world.store, world.host_id, &id, deadline);
  world.address = own_address(environment, id);
  if (id.bootstrap == BootstrapMethod::kExchange && id.address.empty())
    world.address = agreed_address(*world.store, id, world.address, deadline);
  take_identity(id, &world);
  if (id.bootstrap != BootstrapMethod::kAgent) publish_cpus(world, usable_cpus(), deadline);
  world.threads = threads_per_rank(environment, own_cores(world), 1);
  const auto device = choose_device(visible_devices(environment), id.local_rank, id.device);
  if (!device.warning.empty()) log_warn(device.warning);
  world.device = device.index;
  report_threads(world);
  return world;
}

/// `given`: the program's limit, which comes before the launcher's.
World join_within(std::optional<Deadline> given) {
  if (const auto& assigned = assigned_world()) return *assigned;
  const Deadline usual = given.value_or(Deadline::after(kPatience));
  const Environment environment = with_pmi_port(this_environment(), usual);
  refuse_unforked(environment);
  const Identity id = decided(decide(inputs_from(environment)));
  const Deadline deadline = !given && id.patience ? Deadline::after(*id.patience) : usual;
  if (id.scheduler) {
    stay_for_ranks(id.master, deadline);
    std::exit(0);
  }
  return join_as(id, environment, deadline);
}

}  // namespace

World World::join(Deadline deadline) {
  return join_within(deadline);
}

World World::join() {
  return join_within(std::nullopt);
}

World World::join(const RankArguments& arguments, Deadline deadline) {
  const Environment environment = this_environment();
  refuse_unforked(environment);
  return join_as(decided(decide(arguments, inputs_from(environment))), environment, deadline);
}

}  // namespace lockstep
