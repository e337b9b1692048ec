#pragma once

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {

/// What `body` throws; fails the test when it does not throw an Error.
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

}  // namespace lockstep
