#pragma once
// Measures collectives between ranks that it starts itself, beside the limit of the memory, or
// between ranks of a launcher, on one host or several.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::app {

struct CollectivesBench {
  /// "send": one message in each direction between two ranks, with half of the bytes each; beside
  /// it a memcpy.
  std::string op = "all_reduce";
  std::string backend = "native";
  std::string memory = "own";  ///< "own": from allocate(); "user": ordinary memory.
  int ranks = 2;
  std::vector<int64_t> sizes;  ///< Bytes; of the whole buffer for all_gather and reduce_scatter.
  double seconds = 0.4;        ///< Approximate time for each size.
  int rounds = 9;              ///< At least this number, whatever the time.
  /// Whether to make as many calls back to back as the size allows. Then the burst of a switch or a
  /// shaper does not count as speed.
  bool steady = false;
};

/// Times are of one operation, the slowest rank's, in microseconds.
struct CollectivesResult {
  int64_t bytes = 0;
  double min_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  double algbw_gbs = 0;  ///< bytes / p50.
  double busbw_gbs = 0;  ///< algbw times the op's traffic per rank: 2(P-1)/P for all_reduce, ...
  /// algbw of the same traffic by plain loops, without any protocol; 0 if not measured.
  double ceiling_gbs = 0;
};

const std::vector<std::string>& bench_ops();

/// "4:256M" (doubling), "25M,64M" or "1K": K, M and G are powers of 1024. Errors: kInvalidArgument.
std::vector<int64_t> parse_sizes(const std::string& text);

/// Forks the ranks and a store, runs, and waits for them. Rank 0's process calls `report` once per
/// size, as soon as the result is known, and `finish` at the end. Returns the exit status of the
/// first rank that failed, or 0. Call it from a process without threads.
int run_collectives_bench(const CollectivesBench& bench,
                          const std::function<void(const CollectivesResult&)>& report,
                          const std::function<void()>& finish);

/// One rank of a job that a launcher has started; only rank 0 calls `report` and `finish`. No
/// ceiling. Collective over the world. Errors: as ProcessGroup.
void run_collectives_rank(const World& world, const CollectivesBench& bench,
                          const std::function<void(const CollectivesResult&)>& report,
                          const std::function<void()>& finish);

}  // namespace lockstep::app
