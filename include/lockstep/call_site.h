#pragma once
// The place where a program calls an operation, for the flight recorder.

#include <cstdint>

namespace lockstep {

/// A place in the source, and the bucket of gradients that the call works on, if any.
///
/// Make it the last parameter of a function, with here() as its default: it is then the caller's
/// place, at the price of three registers. A function that calls for its own caller passes that
/// caller's place on. A function that calls on its own account leaves it out.
struct CallSite {
  const char* file = nullptr;  ///< As the compiler got it; valid as long as the program runs.
  uint32_t line = 0;           ///< 0: unknown.
  int32_t bucket = -1;         ///< -1: none.

  // std::source_location::current() does the same, but clang has it only from version 16 on.
  static constexpr CallSite here(const char* file = __builtin_FILE(),
                                 uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr CallSite of_bucket(int index) const { return {file, line, index}; }
};

}  // namespace lockstep
