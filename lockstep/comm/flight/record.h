#pragma once
// Reading flight recorders, and saying what they mean. Pure functions: bytes in, text out.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// One operation, as FlightEvent has it.
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
  bool went_on = false;  ///< It failed, and its group went on.
  bool waits = false;    ///< Its caller waits meanwhile; else it may do other things.
};

/// "all_reduce #12 (float32, 24.0 MiB)", "barrier #3", "send to 3 (float32, 4 B)"
std::string to_string(const FlightEntry& entry);

/// One rank's recorder.
struct FlightRecord {
  int rank = 0;
  int size = 0;
  int pid = 0;
  uint64_t pid_space = 0;  ///< As lockstep::pid_space(): whose number `pid` is.
  std::string host;
  int exit_code = -1;  ///< That it called exit() with; -1: it did not.
  // The next three are set by whoever knows; read_flight() cannot.
  bool alive = true;
  std::string process;  ///< process_state(); empty: unknown.
  std::string stack;    ///< As to_string(Stack); empty: not looked at.
  std::vector<std::string> groups;
  struct Membership {
    int rank = 0;  ///< In the group.
    int size = 0;
  };
  std::map<std::string, Membership> memberships;  ///< By group.
  /// Oldest first. An operation that was being written down is left out; while the writer goes on,
  /// one that was overwritten during the reading may be mixed of two.
  std::vector<FlightEntry> entries;
};

/// `bytes`: a whole FlightMemory from anywhere. Errors: kCorrupt, naming `what`.
FlightRecord read_flight(std::span<const std::byte> bytes, const std::string& what);

/// Ranks of which flight_table() will say in some group that they are odd, and that are alive:
/// whose stack is worth a look. `now_ns`: as there.
std::vector<int> suspects(const std::vector<FlightRecord>& records, int64_t now_ns);

/// A table of each group's ranks: the last collective of each, where in the program it was called,
/// whether the rank is in it and since when, and in the last column who is odd: behind the others,
/// in another operation than most, dead, or without a record. One that has ended well is not
/// odd. Then who comes late to the collectives: see lateness.h. Then the stacks of those ranks that
/// have one. `now_ns`: since the epoch, before the first recorder was read. Who has not come to a
/// call that another entered less than a second before that is not behind yet.
///
///   group w
///     rank    pid  last operation                       called at    state
///        0   4711  all_reduce #12 (float32, 24.0 MiB)   main.cpp:88  inside for 3.2 s
///        1   4712  all_reduce #11 (float32, 24.0 MiB)   main.cpp:88  done 3.2 s ago    <- 1 behind
///   stack of rank 1: clock_nanosleep < std::this_thread::sleep_for < main
std::string flight_table(std::vector<FlightRecord> records, int64_t now_ns);

}  // namespace lockstep
