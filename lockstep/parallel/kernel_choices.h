#pragma once
// What decides which kernels compute on a rank. Ranks that differ in it get other bits for the same
// numbers, and nothing else tells.

#include <map>
#include <string>
#include <vector>

#include "lockstep/process_group.h"

namespace lockstep {

/// By name: environment variables (kKernelVariables; those that are set), intra-op threads, the
/// instruction set that libtorch uses, the kernels that OpenBLAS has chosen.
using KernelChoices = std::map<std::string, std::string>;
KernelChoices kernel_choices();

/// "OPENBLAS_CORETYPE: HASWELL on 0-2, not set on 3; intra-op threads: ...", of the ranks in order;
/// empty when all are alike.
std::string kernel_difference(const std::vector<KernelChoices>& by_rank);

/// Collective. Rank 0 warns where ranks differ, once a process. Cost: one all_gather of 8 bytes a
/// rank where they do not.
void compare_kernel_choices(ProcessGroup& group, CallSite site = CallSite::here());

}  // namespace lockstep
