#pragma once
// Code that a program generates at run time, such as oneDNN's kernels. It belongs to no module, and
// no table describes how to unwind its stack. On x86-64 its caller is searched for on the stack.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/comm/flight/libdw.h"

namespace lockstep::inline internal {

/// No more frames of a stack are read.
inline constexpr size_t kMostFrames = 256;

/// True if `place` of that process is executable and belongs neither to a file nor to the kernel's
/// vdso.
bool is_generated_code(int pid, uint64_t place);

/// The place from which generated code was called.
struct CallerSearch {
  std::vector<uint64_t> places;  ///< Innermost first; empty: no caller was found.
  bool is_guess = false;         ///< The first of them is only likely.
};

/// The caller of generated code in the main thread of `pid`, which this thread has stopped by
/// ptrace. The innermost return address on its stack (64 KiB of it): it follows a call, in a
/// function that the tables of its module describe. The frame pointer confirms it, or leads to a
/// better one. `process`: of dwfl_begin(), with nothing attached to it.
CallerSearch find_caller(const Libdw& dw, Dwfl* process, int pid);

}  // namespace lockstep::inline internal
