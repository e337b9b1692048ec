#pragma once

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The Error that `body` throws; fails the test if it throws none.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(ErrorCode::kInternal, "");
}

}  // namespace lockstep::inline internal
