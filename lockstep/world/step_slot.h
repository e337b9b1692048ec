#pragma once
// A worker's progress in memory that it shares with its agent and `lockstep ps`: a slot for each
// worker, which outlives the worker.

#include <atomic>
#include <cstdint>

namespace lockstep {

inline constexpr char kStepBoardName[] = "lockstep-steps";
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
  int64_t work_ns = 0;  ///< Start of other work than steps.
  char work[24] = {};   ///< Its name; empty: none.
};

}  // namespace lockstep
