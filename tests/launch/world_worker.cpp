// A rank for the launch tests: joins, meets all others in a barrier, prints its place.

#include <cstdio>
#include <cstdlib>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/world.h"

namespace {

/// Arguments: none; one, to wait as long as the launcher allows; or rank, size and the port where
/// they meet on this host.
lockstep::World join(int argc, char** argv) {
  using namespace lockstep;
  if (argc == 2) return World::join();
  if (argc < 4) return World::join(Deadline::after(60s));
  return World::join({.rank = std::atoi(argv[1]),
                      .world_size = std::atoi(argv[2]),
                      .master_addr = "127.0.0.1",
                      .master_port = std::atoi(argv[3])},
                     Deadline::after(60s));
}

int body(int argc, char** argv) {
  using namespace lockstep;
  const World world = join(argc, argv);
  store_barrier(*world.store, "here", world.rank, world.size, Deadline::after(60s));
  std::printf("rank %d/%d local %d/%d node %d/%d by %s at %s, %d threads, secret %zu\n", world.rank,
              world.size, world.local_rank, world.local_size, world.node_rank, world.num_nodes,
              world.launcher.c_str(), world.address.c_str(), world.threads, world.secret.size());
  std::fflush(stdout);
  // Under torch's environment rank 0 serves the store, and must not end it too early.
  store_barrier(*world.store, "done", world.rank, world.size, Deadline::after(60s));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("world_worker", body, argc, argv);
}
