#pragma once
// Cores that this process may use, and one rank's share of them.

#include <string>
#include <vector>

#include "lockstep/world.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// CPU time that the control groups of this process allow, in CPUs; 0: no limit. It is the least of
/// all its groups (cpu.max of version 2, cpu.cfs_quota_us of version 1). Reads files of /proc and
/// /sys below `root` ("" for this host's).
double cpu_quota(const std::string& root = "");

/// Intra-op threads of a rank: OMP_NUM_THREADS (its first number) if set, else cores / ranks, at
/// least 1.
int threads_per_rank(const Environment& environment, int cores, int local_size);

/// Cores this process may use: the CPUs it may run on, limited by its control groups' quota of CPU
/// time (a container's limit), rounded down. At least 1.
int usable_cores();
/// The same for threads_per_rank() of `ranks` ranks. Without a CPU more than ranks a quota changes
/// nothing, and its files are not read.
int cores_for(int ranks);
/// The same as usable_cores() for `cpus` CPUs and a quota as from cpu_quota().
int cores_within(int cpus, double quota);

/// CPUs of this host that are on.
int online_cpus();
/// Cores of this host for processes that are bound to different ones of its CPUs: those that are
/// on, limited by the quota. At least 1. `root`: as above.
int cores_of_host(const std::string& root = "");

/// One rank's share of them. `sharers` ranks, including this one, share its CPUs (1 if a launcher
/// has bound each to others). All `local_size` ranks of the host share the quota.
int cores_of_rank(int cpus, int sharers, double quota, int local_size);

/// In the environment of a worker that its agent has bound to CPUs: number of ranks of the host
/// with the same CPUs, including itself.
inline constexpr char kCpuSharersVariable[] = "LOCKSTEP_CPU_SHARERS";

/// Tells the other ranks of this host which CPUs this one may run on. Waits until all have done so
/// if its launcher has bound it to a part of them. A launcher that binds ranks gives each its own;
/// a rank that may run on all CPUs shares them with all. Call before ranks_on_my_cpus() if there is
/// no agent of ours. Errors: kTimeout.
void publish_cpus(const World& world, const std::vector<int>& cpus, Deadline deadline);

/// Number of ranks of this host with these CPUs, including this one: from the agent, else from
/// publish_cpus(), else all.
int ranks_on_my_cpus(const World& world, const std::vector<int>& cpus);

/// Cores that this rank does not share; see cores_of_rank(). At least 1.
int own_cores(const World& world);

}  // namespace lockstep::inline internal
