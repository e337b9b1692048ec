#pragma once
// Cores that this process may use, and which part of them is one rank's own.

#include <string>
#include <vector>

#include "lockstep/world.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// CPUs' worth of time that the control groups of this process leave it, the least of all around
/// it (cpu.max of version 2, cpu.cfs_quota_us of version 1); 0: no limit. Reads files of /proc and
/// /sys below `root` ("" for this host's).
double cpu_quota(const std::string& root = "");

/// Intra-op threads of a rank: OMP_NUM_THREADS (its first number) where it is set, else
/// cores / ranks, at least 1.
int threads_per_rank(const Environment& environment, int cores, int local_size);

/// Cores this process may use: CPUs it may run on, and no more than its control groups' quota of
/// processor time (a container's limit) comes to, rounded down. At least 1.
int usable_cores();
/// The same of `cpus` CPUs and a quota as cpu_quota() gives it.
int cores_within(int cpus, double quota);

/// What of them is one rank's own: its CPUs are shared by `sharers` ranks, itself among them (1
/// where a launcher has bound each to others), the quota by all `local_size` ranks of the host.
int cores_of_rank(int cpus, int sharers, double quota, int local_size);

/// In the environment of a worker that its agent has bound to CPUs: how many ranks of the host have
/// the same ones, itself among them.
inline constexpr char kCpuSharersVariable[] = "LOCKSTEP_CPU_SHARERS";

/// Tells the other ranks of this host which CPUs this one may run on, and waits until all have,
/// where its launcher has bound it to a part of them: a launcher that binds ranks gives each its
/// own, and a rank that may run on all CPUs shares them with all. Before ranks_on_my_cpus() where
/// there is no agent of ours. Errors: kTimeout.
void tell_my_cpus(const World& world, const std::vector<int>& cpus, Deadline deadline);

/// How many ranks of this host have these CPUs, this one among them: what the agent says, what was
/// told, else all.
int ranks_on_my_cpus(const World& world, const std::vector<int>& cpus);

/// Cores that this rank need not share; see cores_of_rank(). At least 1.
int own_cores(const World& world);

}  // namespace lockstep
