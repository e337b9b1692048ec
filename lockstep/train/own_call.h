#pragma once
// Calls of a program's own functions.

#include <fmt/format.h>

#include <exception>
#include <string_view>
#include <type_traits>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// What `call` returns. Any exception becomes an Error "CONTEXT: its message", with the code of an
/// Error, and of another exception the first line alone. `context` returns the text, and is called
/// after an exception only.
template <typename Call, typename Context>
std::invoke_result_t<Call> call_with_context(const Call& call, const Context& context) {
  const auto failed = [&](ErrorCode code, std::string_view why) {
    return Error(code, fmt::format("{}: {}", context(), why));
  };
  try {
    return call();
  } catch (const Error& error) {
    throw failed(error.code(), error.what());
  } catch (const std::exception& error) {
    throw failed(ErrorCode::kInternal, first_line(error.what()));
  } catch (...) {
    throw failed(ErrorCode::kInternal, "its exception is no std::exception");
  }
}

}  // namespace lockstep::inline internal
