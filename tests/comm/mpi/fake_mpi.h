#pragma once
// An MPI library for tests of what Lockstep adds to one: every call is done at once and changes
// nothing, as for ranks that all give the same; those of one kind can be made never to end.

#include <atomic>
#include <cstdint>

#include "lockstep/comm/mpi/shim.h"

struct FakeMpi {
  std::atomic<int> held = -1;  ///< The LockstepMpiKind of which no call ends; -1: none.
  std::atomic<int> starts = 0;
  std::atomic<bool> numbers_all_zero = false;  ///< As under another library's launcher.
  std::atomic<int64_t> abandoned_ms = -1;
  /// How many calls have not ended.
  int (*pending)();
  /// Whether all memory that they were given holds what it held when they started, the uneven
  /// kinds' lists of counts too.
  bool (*memory_is_there)();
  /// What MPI may do at any time: writes where they were told to. They are done then.
  void (*deliver)();
};

extern "C" {
/// What the library exports beside lockstep_mpi_api().
FakeMpi* lockstep_fake_mpi();
}
