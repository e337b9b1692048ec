#pragma once
// How much processor time this process may use: containers are limited by it, not by CPUs.

#include <string>

namespace lockstep {

/// CPUs' worth of time that the control groups of this process leave it, the least of all around
/// it (cpu.max of version 2, cpu.cfs_quota_us of version 1); 0: no limit. Reads files of /proc and
/// /sys below `root` ("" for this host's).
double cpu_quota(const std::string& root = "");

}  // namespace lockstep
