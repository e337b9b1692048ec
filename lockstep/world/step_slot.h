#pragma once
// A rank's progress in memory that it shares with `lockstep ps` and, if it has one, its agent. An
// agent has a slot for each of its workers, which outlives the worker. Without an agent a rank
// makes memory of its own.

#include <atomic>
#include <cstdint>

namespace lockstep::inline internal {

inline constexpr char kProgressMemoryName[] = "lockstep-steps";
inline constexpr char kExpectsSteps = 'e';
inline constexpr char kStepped = 's';
struct alignas(128) StepSlot {
  std::atomic<char> mark = 0;         ///< One of the two above; 0: no report yet.
  std::atomic<char> goes_on = 0;      ///< Written by the agent; see job_goes_on().
  std::atomic<uint32_t> version = 0;  ///< Odd while the rest is being written.
  int64_t step = 0;
  int64_t total = 0;
  double loss = 0;
  double seconds_left = 0;
  double step_seconds = 0;  ///< Mean of the last steps; 0: not yet known.
  int64_t stepped_ns = 0;   ///< End of the last step: CLOCK_MONOTONIC.
  char note[48] = {};
  int32_t epoch = 0;
  int32_t num_epochs = 0;
  int64_t work_ns = 0;     ///< Start of other work than steps.
  char work[24] = {};      ///< Its name; empty: none.
  int64_t begun_ns = 0;    ///< When this rank reported its first step; 0: none since its start.
  int64_t begun_step = 0;  ///< The number of that step.
};

/// The name differs from kProgressMemoryName: LOCKSTEP_STEPS of a past job must not lead here.
inline constexpr char kOwnStepsName[] = "lockstep-own-steps";
inline constexpr uint64_t kOwnStepsMagic = 0x31'53'50'54'53'4e'57'4f;  // "OWNSTPS1"
/// The memory of a rank without an agent: a memfd that it keeps open, found in its /proc/PID/fd.
struct OwnSteps {
  std::atomic<uint64_t> magic = 0;  ///< Written last.
  uint64_t pid_space = 0;           ///< As lockstep::pid_space(): the numbering of `pid`.
  int32_t pid = 0;                  ///< Of the rank; its forked children have this open, too.
  uint32_t fork_generation = 0;     ///< For the rank itself: the same, of in_child.h.
  StepSlot slot;
};

}  // namespace lockstep::inline internal
