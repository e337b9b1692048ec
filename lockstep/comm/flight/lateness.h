#pragma once
// Who keeps the others waiting: when the ranks came to the collectives that all recorders still
// hold, and what each did by itself between them. Pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"

namespace lockstep {

/// One rank's arrivals at a group's collectives. Late: after the first rank.
struct Lateness {
  int rank = 0;
  int64_t collectives = 0;  ///< That all of the records have.
  double mean_ms = 0;
  double most_ms = 0;
  int64_t last = 0;   ///< How often it came last.
  double own_ms = 0;  ///< Mean time before a collective in which it was in none.
};

struct Arrivals {
  std::vector<Lateness> ranks;
  int64_t begin_ns = 0;  ///< The first arrival at the first of those collectives.
  int64_t end_ns = 0;    ///< At the last.
  /// The rank that the others wait for; -1: none. See slow_in_a_row().
  int slowest = -1;
};

/// By rank, for those of `records` that are in `group`. Moments are compared by the hosts' clocks;
/// own times need none.
Arrivals arrivals_in(const std::vector<FlightRecord>& records, const std::string& group);

/// Own times of ranks in parts of the run, part by part. Who comes last says little, for somebody
/// always does, and who waits for a slow rank comes late to what follows. A rank is slow in a part
/// whose own time there is kSlowFactor times the median of the others', and 0.1 ms a collective
/// more. Returns the rank (index) that was so in the last kSlowParts parts in a row; -1: none.
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

}  // namespace lockstep
