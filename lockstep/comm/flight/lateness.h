#pragma once
// Who keeps the others waiting: when the ranks came to the collectives that all recorders still
// hold. Pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"

namespace lockstep {

/// One rank's arrivals at a group's collectives. Late: after the first rank.
struct Lateness {
  int rank = 0;
  int64_t collectives = 0;  ///< That all of `records` have.
  double mean_ms = 0;
  double most_ms = 0;
  int64_t last = 0;  ///< How often it came last.
};

/// By rank, for those of `records` that are in `group`. Times are compared by the hosts' clocks.
std::vector<Lateness> lateness_in(const std::vector<FlightRecord>& records,
                                  const std::string& group);

/// The rank that came last more often than not, and on average at least 0.1 ms after the first
/// (what is less is the price of a turn); -1: none.
int slowest(const std::vector<Lateness>& arrivals);

/// Lines of a table; empty below kFewest collectives or with one rank only.
///
///   arrivals at the last 400 collectives
///     rank   mean late   most late   last in
///        0      0.1 ms      3.0 ms       2 %
///        1     35.2 ms     40.0 ms      97 %  <- slowest
std::string lateness_table(const std::vector<Lateness>& arrivals);
inline constexpr int64_t kFewestArrivals = 8;

}  // namespace lockstep
