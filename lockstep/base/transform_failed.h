#pragma once
// A fault of a transform, as against that of a picture.

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep::inline internal {

/// A transform has a fault, whatever the picture. No sample replaces another: training ends, or the
/// evaluation.
struct TransformFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Calls `apply`, the work of the transform `name`. Errors: its Errors as they are, which mean an
/// unusable picture; TransformFailed with the name for any other exception.
template <typename Apply>
void run_transform(std::string_view name, const Apply& apply) {
  const auto failed = [&](const std::string& why) {
    return TransformFailed("the transform " + std::string(name) + " failed: " + why);
  };
  try {
    apply();
  } catch (const Error&) {
    throw;
  } catch (const TransformFailed&) {
    throw;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("its exception is no std::exception");
  }
}

}  // namespace lockstep::inline internal
