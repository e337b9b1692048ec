#pragma once
// Finds the rank that keeps the others waiting: arrivals at the collectives that all recorders
// still hold, and each rank's own time between them. Pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"

namespace lockstep::inline internal {

/// One rank's arrivals at a group's collectives. Late: after the first rank.
struct Lateness {
  int rank = 0;
  int64_t collectives = 0;  ///< Present in all of the records.
  double mean_ms = 0;
  double most_ms = 0;
  int64_t last = 0;   ///< How often it came last.
  double own_ms = 0;  ///< Mean time before a collective during which it was in none.
};

struct Arrivals {
  std::vector<Lateness> ranks;
  int64_t begin_ns = 0;  ///< The first arrival at the first of these collectives.
  int64_t end_ns = 0;    ///< The first arrival at the last.
  /// The rank for which the others wait; -1: none. See slow_in_a_row().
  int slowest = -1;
};

/// By rank, for those of `records` that are in `group`. Arrivals are compared by the hosts' clocks;
/// own times do not depend on them.
Arrivals arrivals_in(const std::vector<FlightRecord>& records, const std::string& group);

/// Own times of ranks in parts of the run, part by part. The last arrival shows little: some rank
/// is always last, and a rank that waited for a slow rank is late afterwards. A rank is slow in a
/// part if its own time there is kSlowFactor times the median of the others, and 0.1 ms per
/// collective more. Returns the rank (index) that was slow in the last kSlowParts parts in a row;
/// -1: none.
int slow_in_a_row(const std::vector<std::vector<double>>& own_ms_of_parts);
inline constexpr double kSlowFactor = 1.5;
inline constexpr size_t kSlowParts = 3;

/// Lines of a table; empty below kFewestArrivals collectives or with one rank only.
///
///   arrivals at the last 400 collectives, in 41.3 s until 0.2 s ago
///     rank   mean late   most late   last in    own time
///        0      0.1 ms      3.0 ms       2 %      4.1 ms
///        1     35.2 ms     40.0 ms      97 %     39.2 ms  <- slowest
std::string lateness_table(const Arrivals& arrivals, int64_t now_ns);
inline constexpr int64_t kFewestArrivals = 8;

}  // namespace lockstep::inline internal
