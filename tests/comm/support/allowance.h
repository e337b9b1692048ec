#pragma once
// The allowance for "a second" on a busy machine.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "lockstep/base/env.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {

/// Number of processes per core: now or in the last minute, whichever is more.
inline double load_by_core() {
  double load = 0;
  double running = 0;
  if (std::FILE* const file = std::fopen("/proc/loadavg", "r")) {
    if (std::fscanf(file, "%lf %*f %*f %lf/", &load, &running) != 2) load = running = 0;
    std::fclose(file);
  }
  // The cores of all tests together: this one may be bound to some of them.
  const auto cores = env_or("LOCKSTEP_TEST_CORES", "1");
  return std::max(load, running) / std::max(1, std::atoi(cores.c_str()));
}

/// The allowance for `seconds` of an idle machine; `least` times as long at least. Twice, as a
/// machine may be slow although few processes run; limits that this tells apart are 20 s or more.
inline double allowed(double seconds, double least = kSanitized ? 1 : 2) {
  return seconds * std::max(least, load_by_core()) * (kSanitized ? 5 : 1);
}

}  // namespace lockstep::testing
