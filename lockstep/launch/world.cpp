#include "lockstep/launch/world.h"

#include <thread>

#include "lockstep/store/memory/memory_store.h"

namespace lockstep {

World World::join(Deadline) {
  World world;
  world.host_id = this_host_id();
  world.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  world.store = make_memory_store();
  return world;
}

}  // namespace lockstep
