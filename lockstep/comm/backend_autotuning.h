#pragma once
// Which back end is the fastest between these hosts: asked of the hosts themselves.

#include <span>

#include "lockstep/comm/backends.h"

namespace lockstep {

/// A back end must take at most this part of the time of the first to be preferred to it.
inline constexpr double kWorthLeavingTheFirst = 0.95;

/// Which of the back ends to take that needed `seconds` each (infinity: it cannot serve). The
/// fastest, but the first unless the fastest gains 5 %: the first is native, which alone keeps the
/// fixed order, and less is within the noise of a short measurement.
size_t fastest(std::span<const double> seconds);

/// Measures an all_reduce of 1 MiB and one of 8 MiB (float32, as gradient buckets) with every back
/// end that can serve `spec`, and returns the one to take: the same on all ranks. Rank 0 logs the
/// figures. Collective. Cost: 36 MiB reduced with each back end; one that does not meet its peers
/// within 10 s is left out.
const Backend& backend_autotuning(const GroupSpec& spec);

}  // namespace lockstep
