#pragma once
// How long "a second" may take on a machine that others use as well.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "lockstep/base/env.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {

/// How many processes want each core: now or in the last minute, whichever is more.
inline double load_by_core() {
  double load = 0;
  double running = 0;
  if (std::FILE* const file = std::fopen("/proc/loadavg", "r")) {
    if (std::fscanf(file, "%lf %*f %*f %lf/", &load, &running) != 2) load = running = 0;
    std::fclose(file);
  }
  // Those of all tests together: this one may be bound to some of them.
  const auto cores = env_or("LOCKSTEP_TEST_CORES", "1");
  return std::max(load, running) / std::max(1, std::atoi(cores.c_str()));
}

/// What `seconds` of a machine that has nothing else to do may be here.
inline double allowed(double seconds) {
  return seconds * std::max(1.0, load_by_core()) * (kSanitized ? 5 : 1);
}

}  // namespace lockstep::testing
