#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/error.h"

namespace lockstep::testing {

/// Text of the Error that `body` throws; the test fails for another code, or without an error.
template <typename Body>
std::string error_of(ErrorCode code, Body body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace lockstep::testing
