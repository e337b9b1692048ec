#pragma once
// Where a program calls an operation, for the flight recorder.

#include <cstdint>

namespace lockstep {

/// A place in the source, and the bucket of gradients that is worked on there, if any.
///
/// As the last parameter of a function, with here() as its default, it is the caller's place, at
/// the price of three registers. A function that makes a call for its own caller passes that
/// caller's place on; one that decides by itself to make it leaves it out.
struct CallSite {
  const char* file = nullptr;  ///< As the compiler was given it; kept as long as the program runs.
  uint32_t line = 0;           ///< 0: unknown.
  int32_t bucket = -1;         ///< -1: none.

  // What std::source_location::current() does, which clang has from version 16 on.
  static constexpr CallSite here(const char* file = __builtin_FILE(),
                                 uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr CallSite of_bucket(int index) const { return {file, line, index}; }
};

}  // namespace lockstep
