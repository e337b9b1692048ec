#pragma once
// The flight recorder: what this rank's groups did last, in memory that outlives it.
//
// One ring a rank. Without more it is a memfd, which `lockstep inspect PID` reads through /proc
// while the process lives. With LOCKSTEP_FLIGHT_DIR (which `lockstep run --log_dir` sets) it is the
// file DIR/rank_R.flight, mapped; what was written stays readable after kill -9, because the pages
// belong to the file.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Layout of the ring, the same for writer and readers; all zero where unused. Text ends with 0.
struct FlightEvent {
  std::atomic<uint64_t> number = 0;  ///< 1 for the rank's first event; 0: none yet.
  uint64_t sequence = 0;             ///< 1 for the group's first collective; 0: point to point.
  int64_t count = 0;                 ///< Elements; -1 where ranks may differ.
  int64_t bytes = 0;                 ///< Of this rank's buffer.
  int64_t entered_ns = 0;            ///< CLOCK_MONOTONIC.
  int64_t left_ns = 0;               ///< 0: still inside.
  int32_t peer = -1;                 ///< Root, destination or source (group rank), or -1.
  uint16_t group = 0;                ///< Index into FlightHeader::groups.
  uint8_t dtype = 0;                 ///< DType.
  uint8_t failed = 0;                ///< 1: left by an error.
  char call[16] = {};                ///< "all_reduce".
};
struct FlightGroup {
  char name[56] = {};
  int32_t rank = 0;
  int32_t size = 0;
};
inline constexpr uint64_t kFlightMagic = 0x31'54'48'47'4c'46'53'4c;  // "LSFLGHT1"
inline constexpr uint32_t kFlightEvents = 2048;
inline constexpr uint32_t kFlightGroups = 64;  ///< Groups after that share the last entry.
struct FlightHeader {
  uint64_t magic = 0;  ///< Written last.
  int32_t pid = 0;
  int32_t rank = 0;  ///< In the world.
  int32_t size = 0;  ///< Of the world.
  std::atomic<uint32_t> groups_used = 0;
  std::atomic<uint64_t> events_begun = 0;
  int64_t realtime_offset_ns = 0;  ///< CLOCK_REALTIME - CLOCK_MONOTONIC.
  char host[64] = {};
  FlightGroup groups[kFlightGroups] = {};
};
struct FlightMemory {
  FlightHeader header;
  FlightEvent events[kFlightEvents] = {};  ///< Number n lies at (n - 1) % kFlightEvents.
};

/// Name of the memfd, as /proc/PID/fd shows it.
inline constexpr const char* kFlightMemfd = "lockstep-flight";
inline constexpr const char* kFlightSuffix = ".flight";

/// The writing end. Thread-safe; no locks, no system calls. Cost of an event: two readings of the
/// clock and two dozen stores, under 100 ns (bench_flight).
class FlightRing {
 public:
  /// That of world rank `rank` in this process; made when first asked for. Where nothing can be had
  /// that others can read, it says so once (warning), and it is this process's own memory.
  static FlightRing& of_rank(int rank, int world_size);

  /// A memfd when `path` is empty. A file is always a new one: what another ring has mapped under
  /// that name stays whole. All of it is reserved, so a disk that fills up later does no harm.
  /// Errors: kIo; no file is left then.
  FlightRing(int rank, int world_size, const std::string& path);
  /// In memory that only this process sees.
  FlightRing(int rank, int world_size);
  ~FlightRing();
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  uint16_t add_group(std::string_view name, int rank, int size);

  /// What FlightEvent says of an operation that begins now.
  struct Operation {
    const char* call;
    uint16_t group;
    uint64_t sequence;
    int64_t count;
    int64_t bytes;
    uint8_t dtype;
    int32_t peer;
  };
  /// Returns the event's number, for leave().
  uint64_t enter(const Operation& operation);
  void leave(uint64_t number, bool failed);

  const FlightMemory& memory() const { return *memory_; }
  int fd() const { return fd_.get(); }  ///< -1: in memory that only this process sees.

 private:
  void fill_header(int rank, int world_size);

  FlightMemory* memory_ = nullptr;
  UniqueFd fd_;  // open as long as the ring, for those that look into /proc/PID/fd
  std::unique_ptr<FlightMemory> own_;  // when there is no descriptor
};

}  // namespace lockstep
