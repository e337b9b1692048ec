#pragma once
// The flight recorder: what this rank's groups did last, in memory that outlives it.
//
// One ring a rank. Without more it is a memfd, which `lockstep inspect PID` reads through /proc
// while the process lives. With LOCKSTEP_FLIGHT_DIR (which `lockstep run --log_dir` sets) it is the
// file DIR/rank_R.flight, mapped; what was written stays readable after kill -9, because the pages
// belong to the file.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/call_site.h"
#include "lockstep/comm/flight/layout.h"

namespace lockstep {

/// Which places in the source stand in a flight recorder's table, and where: the writer's look-up
/// of its own table. Thread-safe, without locks; a place that is known costs a few nanoseconds, a
/// new one the copying of its name. Two threads that come with the same new place at once may give
/// it two entries, which does no harm.
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

/// Name of the memfd, as /proc/PID/fd shows it.
inline constexpr const char* kFlightMemfd = "lockstep-flight";
inline constexpr const char* kFlightSuffix = ".flight";

/// As a recorder has a group's name: one that is too long (of a sub-group's sub-group) is cut, and
/// ends in a digest of all of it, so that no other group has it.
std::string recorded_name(std::string_view name);

/// The writing end. Thread-safe; no locks, no system calls. Cost of an event: two readings of the
/// clock, a look-up of its call site and two dozen stores, under 100 ns (bench_flight).
class FlightRing {
 public:
  /// That of world rank `rank` in this process; made when first asked for. Where its file cannot be
  /// had, as on a full disk, it says so once (warning) and is a memfd; where nothing can be had
  /// that others can read, it says that too, and is this process's own memory.
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

  /// Its flight_group_id(); kNoFlightGroup where kFlightGroups live already. It is recorded as
  /// recorded_name(name).
  uint16_t add_group(std::string_view name, int rank, int size);
  /// The group has ended: its entry is free for another one when no other is.
  void end_group(uint16_t group);

  /// What FlightEvent says of an operation that begins now.
  struct Operation {
    const char* call;
    uint16_t group;
    uint64_t sequence;
    int64_t count;
    int64_t bytes;
    uint8_t dtype;
    int32_t peer;
    CallSite site = {};
    bool waits = false;
  };
  /// Returns the event's number, for leave().
  uint64_t enter(const Operation& operation);
  void wait_for(uint64_t number);               ///< From now on its caller waits for it.
  void leave(uint64_t number, uint8_t failed);  ///< FlightEvent::failed.

  /// The process ends, with this status.
  void end(int status) { memory_->header.ended = 1 + (status & 0xff); }

  const FlightMemory& memory() const { return *memory_; }
  int fd() const { return fd_.get(); }  ///< -1: in memory that only this process sees.

 private:
  void fill_header(int rank, int world_size);

  UniqueFd fd_;  // open as long as the ring, for those that look into /proc/PID/fd
  std::unique_ptr<FlightMemory> own_;  // when there is no descriptor
  FlightMemory* const memory_;
  SiteIndex sites_;
  Mutex mutex_;                                             // held by who adds or ends a group
  std::deque<uint16_t> ended_ LOCKSTEP_GUARDED_BY(mutex_);  // groups, longest first
};

}  // namespace lockstep
