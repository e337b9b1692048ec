#pragma once
// What a call threw, for tests that look at its code and text.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::testing {

/// The error that `body` throws; a test failure and kInternal when it throws none.
inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {ErrorCode::kInternal, "none"};
}

inline bool mentions(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

}  // namespace lockstep::testing
