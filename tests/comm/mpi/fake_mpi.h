#pragma once
// An MPI library for tests of Lockstep's part. Every call completes at once and changes nothing, as
// if all ranks gave the same data. Calls of one kind can be made never to end.

#include <atomic>
#include <cstdint>

#include "lockstep/comm/mpi/shim.h"

struct FakeMpi {
  std::atomic<int> held = -1;  ///< The LockstepMpiKind of which no call ends; -1: none.
  std::atomic<int> starts = 0;
  std::atomic<bool> numbers_all_zero = false;  ///< As with another library's launcher.
  std::atomic<int64_t> abandoned_ms = -1;
  /// Number of calls that have not ended.
  int (*pending)();
  /// True if the memory of all these calls is unchanged since their start, including the uneven
  /// kinds' lists of counts.
  bool (*memory_is_there)();
  /// Does what MPI may do at any time: writes to the calls' destinations. The calls are then
  /// complete.
  void (*deliver)();
};

extern "C" {
/// The library's export beside lockstep_mpi_api().
FakeMpi* lockstep_fake_mpi();
}
