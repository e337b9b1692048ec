#pragma once
// Which part of a host's cores is one rank's own.

#include <vector>

#include "lockstep/world.h"

namespace lockstep {

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
