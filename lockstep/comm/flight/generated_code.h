#pragma once
// Code that a program made while it runs, such as oneDNN's kernels: no module has it, and no table
// says how a stack is unwound from it. On x86-64 its caller is looked for on the stack.

#include <cstdint>
#include <vector>

#include "lockstep/comm/flight/libdw.h"

namespace lockstep {

/// Whether `place` of that process may be executed and is of no file, nor of the kernel's (vdso).
bool is_generated_code(int pid, uint64_t place);

/// Where generated code was called from.
struct CallerSearch {
  std::vector<uint64_t> places;  ///< Innermost first; empty: nobody was found.
  bool is_guess = false;         ///< The first of them is no more than likely.
};

/// Of the main thread of `pid`, which stands in generated code, and still (by ptrace of this
/// thread). The innermost word on its stack (64 KiB of it) that is a return address: it lies behind
/// a call, in a function that the tables of its module describe. The frame pointer confirms it, or
/// has a better one. `process`: of dwfl_begin(), nothing attached to it.
CallerSearch find_caller(const Libdw& dw, Dwfl* process, int pid);

}  // namespace lockstep
