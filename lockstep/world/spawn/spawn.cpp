#include "lockstep/spawn.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "lockstep/base/mutex.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/world/assigned_world.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/host_id.h"
#include "lockstep/world/spawn/ranks.h"

namespace lockstep::inline internal {
namespace {

/// For ranks that are threads of one process.
World shared_world(int num_ranks) {
  World world;
  world.size = world.local_size = num_ranks;
  world.threads = threads_per_rank(this_environment(), usable_cores(), num_ranks);
  world.launcher = "spawn";
  world.host_id = this_host_id();
  world.store = make_memory_store();
  return world;
}

class FailureList {
 public:
  void add(RankFailure failure) {
    const MutexLock lock(mutex_);
    failures_.push_back(std::move(failure));
  }
  std::vector<RankFailure> take() {
    const MutexLock lock(mutex_);
    return std::move(failures_);
  }

 private:
  Mutex mutex_;
  std::vector<RankFailure> failures_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace

std::optional<World>& assigned_world() {
  static thread_local std::optional<World> world;
  return world;
}

std::vector<RankFailure> run_as_threads(int num_ranks, const RankBody& body) {
  FailureList failures;
  World world = shared_world(num_ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    world.rank = world.local_rank = rank;
    threads.emplace_back([&body, &failures, world] {
      assigned_world() = world;
      try {
        body(world.rank);
      } catch (...) {
        failures.add(failure_of(world.rank, std::current_exception()));
      }
    });
  }
  threads.clear();  // joins them
  return failures.take();
}

}  // namespace lockstep::inline internal

namespace lockstep {

void spawn(int num_ranks, const std::function<void(int rank)>& body, const SpawnOptions& options) {
  if (num_ranks < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("spawn of {} ranks; there must be at least 1", num_ranks));
  }
  const auto failures = options.threads ? run_as_threads(num_ranks, body)
                                        : run_as_processes(num_ranks, body, options.grace);
  if (!failures.empty()) throw_failure(cause_among(failures), num_ranks);
}

}  // namespace lockstep
