#pragma once
// The flight recorder: the last operations of this rank's groups, in memory that outlives the rank.
//
// One ring per rank. By default it is a memfd, which `lockstep inspect PID` reads through /proc
// while the process lives. With LOCKSTEP_FLIGHT_DIR (which `lockstep run --log_dir` sets) it is the
// mapped file DIR/rank_R.flight. Its contents stay readable after kill -9, because the pages belong
// to the file.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/flight/layout.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// Index of the places in the source in a flight recorder's table; the writer looks up its own
/// table. Thread-safe, without locks. A known place costs a few nanoseconds, a new one the copy of
/// its name. Two threads that add the same new place at once may create two entries, which is
/// harmless.
class SiteIndex {
 public:
  /// `table` has kFlightSites entries, all empty.
  explicit SiteIndex(FlightSite* table) : table_(table) {}

  /// The value of FlightEvent::site for this place; a new place is added. 0 if it is unknown, or if
  /// its part of the table is full.
  uint16_t find_or_add(const CallSite& site);

 private:
  enum State : uint32_t { kFree, kTaken, kWritten };
  struct Slot {
    std::atomic<State> state = kFree;
    uint32_t line = 0;           // this and the next: before state becomes kWritten
    const char* file = nullptr;  // compared by address: a place has one
  };

  FlightSite* table_;
  Slot slots_[kFlightSites];
};

/// Name of the memfd, as /proc/PID/fd shows it.
inline constexpr const char* kFlightMemfd = "lockstep-flight";
inline constexpr const char* kFlightSuffix = ".flight";

/// The name of a group in a recorder. A long name (of a sub-group's sub-group) is cut and ends in a
/// digest of all of it, so that it stays unique.
std::string recorded_name(std::string_view name);

/// The writer of a flight recorder. Thread-safe; no locks, no system calls. Cost per event: two
/// readings of the clock, a look-up of its call site and two dozen stores, under 100 ns
/// (bench_flight).
class FlightRing {
 public:
  /// The ring of world rank `rank` in this process; made on first use. If its file cannot be made,
  /// as on a full disk, it logs a warning once and is a memfd. If no memory for other processes can
  /// be made, it warns of that too, and is this process's private memory.
  static FlightRing& of_rank(int rank, int world_size);

  /// A memfd if `path` is empty. A file is always a new one: a file of that name that another ring
  /// has mapped stays intact. All of it is reserved, so a disk that fills up later does no harm.
  /// Errors: kIo; no file is left then.
  FlightRing(int rank, int world_size, const std::string& path);
  /// In memory that only this process sees.
  FlightRing(int rank, int world_size);
  ~FlightRing();
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  /// Returns its flight_group_id(); kNoFlightGroup if kFlightGroups groups exist already. It is
  /// recorded as recorded_name(name).
  uint16_t add_group(std::string_view name, int rank, int size);
  /// The group has ended: its entry is reused if no other is free.
  void end_group(uint16_t group);

  /// The description of an operation that begins now.
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
    int64_t entered_ns = 0;  ///< On the steady clock; 0: now.
  };
  /// Returns the event's number, for leave().
  uint64_t enter(const Operation& operation);
  void wait_for(uint64_t number);               ///< The caller waits for it from now on.
  void leave(uint64_t number, uint8_t failed);  ///< FlightEvent::failed.

  /// The process ends, with this status.
  void end(int status) { memory_->header.ended = 1 + (status & 0xff); }

  const FlightMemory& memory() const { return *memory_; }
  int fd() const { return fd_.get(); }  ///< -1: in memory that only this process sees.

 private:
  void fill_header(int rank, int world_size);

  UniqueFd fd_;                        // open as long as the ring, for readers of /proc/PID/fd
  std::unique_ptr<FlightMemory> own_;  // if there is no descriptor
  FlightMemory* const memory_;
  SiteIndex sites_;
  Mutex mutex_;                                             // held while a group is added or ended
  std::deque<uint16_t> ended_ LOCKSTEP_GUARDED_BY(mutex_);  // groups, longest first
};

}  // namespace lockstep::inline internal
