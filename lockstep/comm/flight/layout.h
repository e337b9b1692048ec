#pragma once
// Layout of a flight recorder's memory, the same for writer and readers; all zero where unused.
// Text ends with 0.

#include <atomic>
#include <cstdint>

namespace lockstep::inline internal {

struct FlightEvent {
  std::atomic<uint64_t> number = 0;  ///< 1 for the rank's first event; 0: none yet.
  uint64_t sequence = 0;             ///< 1 for the group's first collective; 0: point to point.
  int64_t count = 0;                 ///< Elements; -1 if ranks may differ.
  int64_t bytes = 0;                 ///< Of this rank's buffer.
  int64_t entered_ns = 0;            ///< CLOCK_MONOTONIC.
  int64_t left_ns = 0;               ///< 0: still inside.
  int32_t peer = -1;                 ///< Root, destination or source (group rank), or -1.
  int32_t bucket = -1;               ///< CallSite::bucket.
  uint16_t group = 0;                ///< flight_group_id().
  uint16_t site = 0;                 ///< 1 + index into FlightHeader::sites; 0: unknown.
  uint8_t dtype = 0;                 ///< DType.
  uint8_t failed = 0;  ///< 1: ended by an error; 2: by one that did not end the group.
  char call[16] = {};  ///< "all_reduce".
  uint8_t waits = 0;   ///< 1: the caller waits meanwhile; 0: it may do other work.
};
/// A group; after its end another one may take the entry.
struct FlightGroup {
  char name[52] = {};
  int32_t rank = 0;
  int32_t size = 0;
  uint8_t generation = 0;  ///< Number of groups that had the entry before.
  uint8_t unused[3] = {};
};
/// FlightEvent::group: the entry, and its generation then. If another group has taken the entry
/// since, the event's group is unknown.
constexpr uint16_t flight_group_id(uint32_t index, uint8_t generation) {
  return static_cast<uint16_t>(index | uint32_t{generation} << 8);
}
struct FlightSite {
  std::atomic<uint32_t> line = 0;  ///< Written last; 0: none yet.
  char file[44] = {};              ///< Without folders; the end of a longer name.
};
inline constexpr uint64_t kFlightMagic = 0x35'54'48'47'4c'46'53'4c;  // "LSFLGHT5"
inline constexpr uint32_t kFlightEvents = 2048;
inline constexpr uint32_t kFlightGroups = 128;  ///< At a time; further ones have no name.
inline constexpr uint16_t kNoFlightGroup = 0xff;
inline constexpr uint32_t kFlightSites = 256;  ///< Further places in the source stay unknown.
struct FlightHeader {
  uint64_t magic = 0;  ///< Written last.
  int32_t pid = 0;
  int32_t rank = 0;                ///< In the world.
  int32_t size = 0;                ///< Of the world.
  std::atomic<int32_t> ended = 0;  ///< 1 + the status given to exit(); 0: not called yet.
  std::atomic<uint32_t> groups_used = 0;
  std::atomic<uint64_t> events_begun = 0;
  uint64_t pid_space = 0;          ///< As lockstep::pid_space(): the numbering of `pid`.
  int64_t realtime_offset_ns = 0;  ///< CLOCK_REALTIME - CLOCK_MONOTONIC.
  char host[64] = {};
  FlightGroup groups[kFlightGroups] = {};
  FlightSite sites[kFlightSites] = {};
};
struct FlightMemory {
  FlightHeader header;
  FlightEvent events[kFlightEvents] = {};  ///< Number n lies at (n - 1) % kFlightEvents.
};

}  // namespace lockstep::inline internal
