#pragma once
// Which places in the source stand in a flight recorder's table, and where.

#include <atomic>
#include <cstdint>

#include "lockstep/call_site.h"
#include "lockstep/comm/flight/layout.h"

namespace lockstep {

/// The writer's look-up of its own table. Thread-safe, without locks; a place that is known costs
/// a few nanoseconds, a new one the copying of its name. Two threads that come with the same new
/// place at once may give it two entries, which does no harm.
class SiteIndex {
 public:
  /// `table` has kFlightSites entries, all empty.
  explicit SiteIndex(FlightSite* table) : table_(table) {}

  /// What FlightEvent::site says of it: added if it is new; 0 when it is unknown, or when there is
  /// no room where it would be looked for.
  uint16_t find_or_add(const CallSite& site);

 private:
  enum State : uint32_t { kFree, kTaken, kWritten };
  struct Slot {
    std::atomic<State> state = kFree;
    uint32_t line = 0;           // this and the next: before state becomes kWritten
    const char* file = nullptr;  // told apart by address: a place has one
  };

  FlightSite* table_;
  Slot slots_[kFlightSites];
};

}  // namespace lockstep
