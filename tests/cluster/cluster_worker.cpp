// A rank for the cluster tests: makes steps, each an all_reduce over all ranks, until a file
// exists. cluster_worker STOP_FILE [TIMEOUT_S]; prints its place and the time of its first step
// (seconds since 1970).

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/world.h"

namespace {

using namespace lockstep;

void say(const World& world, const std::string& what) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  fmt::print("rank {}/{} node {}/{} restart {} by {}: {} at {:.3f}\n", world.rank, world.size,
             world.node_rank, world.num_nodes, world.restart_count, world.launcher, what, now);
  std::fflush(stdout);
}

int body(int argc, char** argv) {
  if (argc < 2) {
    throw Error(ErrorCode::kInvalidArgument, "usage: cluster_worker STOP_FILE [TIMEOUT_S]");
  }
  const std::chrono::seconds timeout(argc > 2 ? std::atoi(argv[2]) : 60);
  const World world = World::join(Deadline::after(60s));
  auto group = ProcessGroup::create(world, {.timeout = timeout});
  // Every step combines whether a rank has seen the file, so all end after the same step.
  for (int64_t step = 1, stop = 0; stop == 0; ++step) {
    stop = std::filesystem::exists(argv[1]) ? 1 : 0;
    group.all_reduce(&stop, 1, DType::kInt64, ReduceOp::kSum).wait();
    if (step == 1) say(world, "first step");
    if (stop > 0) say(world, fmt::format("{} steps", step));
    std::this_thread::sleep_for(10ms);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("cluster_worker", body, argc, argv);
}
