// A rank that checks all guarantees of a back end, under any launcher: cluster_suite BACKEND.

#include <fmt/format.h>

#include <cstdio>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device_backends.h"
#include "lockstep/world.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

int body(int argc, char** argv) {
  if (argc != 2) throw Error(ErrorCode::kInvalidArgument, "usage: cluster_suite BACKEND");
  register_device_backends();
  const std::string backend = argv[1];
  if (backend != "native") promises = {.fixed_order = false, .shared_memory = false};
  const World world = World::join(Deadline::after(60s));
  auto group = ProcessGroup::create(world, {.backend = backend, .timeout = 60s});
  check_everything(group);
  group.barrier();
  fmt::print("rank {} of {} on {} hosts: all of {}\n", world.rank, world.size, world.num_nodes,
             group.backend());
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  return lockstep::run_main("cluster_suite", lockstep::testing::body, argc, argv);
}
