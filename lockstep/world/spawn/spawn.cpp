#include "lockstep/spawn.h"

#include <fmt/format.h>

#include "lockstep/world/spawn/ranks.h"

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
