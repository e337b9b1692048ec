#pragma once
// Ranks for tests: threads of this process over a memory store, or forked processes over a TCP
// store.

#include <functional>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::testing {

using RankBody = std::function<void(World world)>;

/// Ranks per host, e.g. {2, 1}: ranks 0 and 1 on one (pretended) host, rank 2 on another.
using HostLayout = std::vector<int>;

/// Runs `body` on one thread per rank and joins them. Rethrows the first rank's exception, if any.
void run_rank_threads(const HostLayout& hosts, const RankBody& body);
inline void run_rank_threads(int size, const RankBody& body) {
  run_rank_threads(HostLayout{size}, body);
}

/// Forks one process per rank, runs `body` in each and returns each rank's end: exit status, or
/// -signal. A body that throws prints what() and exits with 1. Processes still alive at the
/// deadline are killed (-SIGKILL). `started` is called in the parent with the pids, by rank.
/// `before` is called in the process of each rank before it has a connection or a thread; it may
/// fork the process that continues.
std::vector<int> run_rank_processes(
    const HostLayout& hosts, const RankBody& body,
    std::chrono::milliseconds limit = std::chrono::seconds(60),
    const std::function<void(const std::vector<int>& pids)>& started = {},
    const RankBody& before = {});
inline std::vector<int> run_rank_processes(int size, const RankBody& body) {
  return run_rank_processes(HostLayout{size}, body);
}

}  // namespace lockstep::testing
