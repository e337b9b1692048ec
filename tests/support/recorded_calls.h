#pragma once
// The entries of a local rank's flight recorder.

#include <span>
#include <vector>

#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/flight/ring.h"

namespace lockstep::testing {

inline std::span<const std::byte> bytes_of(const FlightRing& ring) {
  return {reinterpret_cast<const std::byte*>(&ring.memory()), sizeof(FlightMemory)};
}

/// Operations of world rank `rank`, which has had a group; oldest first.
inline std::vector<FlightEntry> recorded_calls(int rank) {
  return read_flight(bytes_of(FlightRing::of_rank(rank, 0)), "own recorder").entries;
}

}  // namespace lockstep::testing
