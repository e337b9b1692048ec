#pragma once
// Finds the fastest back end between these hosts by measuring on them.

#include <span>

#include "lockstep/comm/group/backends.h"

namespace lockstep::inline internal {

/// Another back end is preferred to the first only if it takes at most this part of its time.
inline constexpr double kWorthLeavingTheFirst = 0.95;

/// Index of the back end to take; each needed `seconds` (infinity: it cannot serve). The fastest
/// wins, but the first stays unless the fastest gains 5 %. The first is native, which alone keeps
/// the fixed order, and a smaller gain is within the noise of a short measurement.
size_t fastest(std::span<const double> seconds);

/// Returns the back end to take, the same on all ranks. Measures an all_reduce of 1 MiB and one of
/// 8 MiB (float32, as gradient buckets) with every back end that can serve `spec`. Rank 0 logs the
/// figures. Collective. Cost: 36 MiB reduced with each back end. A back end whose peers do not meet
/// within 10 s is left out.
const Backend& backend_autotuning(const GroupSpec& spec);

}  // namespace lockstep::inline internal
