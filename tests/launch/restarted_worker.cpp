// A rank for the restart tests. It meets the others of its generation and reports steps as its
// first argument requires (none, early, step). It fails with the second while the restart count is
// below the third. With "figures" it reports progress and stays.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/progress.h"
#include "lockstep/world.h"

namespace {

int body(int argc, char** argv) {
  using namespace lockstep;
  if (argc != 4) return 2;
  const std::string steps = argv[1];
  const World world = World::join(Deadline::after(60s));
  store_barrier(*world.store, "here", world.rank, world.size, Deadline::after(60s));
  if (steps != "none") expect_steps();
  if (steps == "step") report_step();
  if (steps == "figures") {
    report_step({.step = 812, .total = 5000, .loss = 1.25, .seconds_left = 440, .note = "slow"});
    std::printf("reported\n");
    std::fflush(stdout);
    while (true) ::pause();
  }
  std::printf("attempt %d\n", world.restart_count);
  std::fflush(stdout);
  store_barrier(*world.store, "done", world.rank, world.size, Deadline::after(60s));
  return world.restart_count < std::atoi(argv[3]) && world.rank == 0 ? std::atoi(argv[2]) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("restarted_worker", body, argc, argv);
}
