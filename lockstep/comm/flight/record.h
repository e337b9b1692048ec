#pragma once
// Reads flight recorders and describes their contents. Pure functions: bytes in, text out.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// One operation, from its FlightEvent.
struct FlightEntry {
  std::string call;
  std::string group;      ///< Name of the group.
  uint64_t sequence = 0;  ///< 0: point to point.
  int64_t count = 0;
  int64_t bytes = 0;
  std::string dtype;
  int peer = -1;
  std::string site;        ///< "trainer.cpp:88", "reducer.cpp:88 (bucket 3)"; empty: unknown.
  int64_t entered_ns = 0;  ///< Since the epoch.
  int64_t left_ns = 0;     ///< 0: still inside.
  bool failed = false;
  bool went_on = false;  ///< It failed, and its group continued.
  bool waits = false;    ///< Its caller waits meanwhile; else it may do other work.
};

/// "all_reduce #12 (float32, 24.0 MiB)", "barrier #3", "send to 3 (float32, 4 B)"
std::string to_string(const FlightEntry& entry);

/// One rank's recorder.
struct FlightRecord {
  int rank = 0;
  int size = 0;
  int pid = 0;
  uint64_t pid_space = 0;  ///< As lockstep::pid_space(): the numbering of `pid`.
  std::string host;
  int exit_code = -1;  ///< The status given to exit(); -1: not called.
  // The next three are set by the caller; read_flight() cannot.
  bool alive = true;
  std::string process;  ///< process_state(); empty: unknown.
  std::string stack;    ///< As to_string(Stack); empty: not examined.
  std::vector<std::string> groups;
  struct Membership {
    int rank = 0;  ///< In the group.
    int size = 0;
  };
  std::map<std::string, Membership> memberships;  ///< By group.
  /// Oldest first. An operation that was being written is left out. While the writer continues, one
  /// that was overwritten during the reading may mix two operations.
  std::vector<FlightEntry> entries;
};

/// `bytes`: a complete FlightMemory from any source. Errors: kCorrupt, naming `what`.
FlightRecord read_flight(std::span<const std::byte> bytes, const std::string& what);

/// Live ranks that flight_table() will mark as odd in some group: their stacks are worth a look.
/// `now_ns`: as in flight_table().
std::vector<int> odd_ranks(const std::vector<FlightRecord>& records, int64_t now_ns);

/// A table of each group's ranks: the last collective of each, its place in the program, whether
/// the rank is in it and since when. The last column marks odd ranks: behind the others, in another
/// operation than most, dead, or without a record. A rank that has ended well is not odd. Then
/// follow the ranks that are late at collectives: see lateness.h. Then follow the stacks of ranks
/// that have one. `now_ns`: since the epoch, before the first recorder was read. A rank that has
/// not entered a call which another entered less than a second earlier is not behind yet.
///
///   group w
///     rank    pid  last operation                       called at    state
///        0   4711  all_reduce #12 (float32, 24.0 MiB)   main.cpp:88  inside for 3.2 s
///        1   4712  all_reduce #11 (float32, 24.0 MiB)   main.cpp:88  done 3.2 s ago    <- 1 behind
///   stack of rank 1: clock_nanosleep < std::this_thread::sleep_for < main
std::string flight_table(std::vector<FlightRecord> records, int64_t now_ns);

}  // namespace lockstep::inline internal
