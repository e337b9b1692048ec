#pragma once
// What a worker tells `lockstep run` of its progress, so that a job that always fails before its
// first step is not started again and again (--max_restarts). Lockstep's trainer does this itself.
// Under other launchers both calls do nothing.

namespace lockstep {

/// This rank will call report_step(). Call it once, before what may fail.
void expect_steps();

/// A training step is complete. The first call costs some microseconds, each further one nothing.
void report_step();

// Between workers and agent: the name of the board, and what a worker writes into its byte.
inline constexpr char kStepBoardName[] = "lockstep-steps";
inline constexpr char kExpectsSteps = 'e';
inline constexpr char kStepped = 's';

}  // namespace lockstep
