#pragma once
// Settings that determine the kernels of a rank. Ranks that differ in them compute different bits
// from the same numbers, and nothing else reveals it.

#include <map>
#include <string>
#include <vector>

#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// By name: environment variables (kKernelVariables; those that are set), intra-op threads, the
/// instruction set of libtorch, the kernels chosen by OpenBLAS.
using KernelChoices = std::map<std::string, std::string>;
KernelChoices kernel_choices();

/// "OPENBLAS_CORETYPE: HASWELL on 0-2, not set on 3; intra-op threads: ...", of the ranks in order;
/// empty if all are alike.
std::string kernel_difference(const std::vector<KernelChoices>& by_rank);

/// Collective. Rank 0 warns, once per process, if ranks differ. Cost: one all_gather of 8 bytes per
/// rank if they do not.
void compare_kernel_choices(ProcessGroup& group, CallSite site = CallSite::here());

}  // namespace lockstep::inline internal
