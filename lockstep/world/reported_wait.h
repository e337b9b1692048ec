#pragma once
// A wait for another process that is usually short, and is logged if it is not.

#include <chrono>

#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// Calls `wait` for at most `quiet_for`. If that ends with kTimeout before `deadline`, calls
/// `report` with the error, once, then `wait` until `deadline`. Returns the result of `wait`.
/// Errors: those of `wait`.
template <class Wait, class Report>
auto wait_and_report(Deadline deadline, std::chrono::milliseconds quiet_for, const Wait& wait,
                     const Report& report) {
  try {
    return wait(deadline.at_most(quiet_for));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout || deadline.passed()) throw;
    report(error);
  }
  return wait(deadline);
}

}  // namespace lockstep::inline internal
