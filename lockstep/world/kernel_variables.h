#pragma once

#include <array>

namespace lockstep::inline internal {

/// Environment variables by which libraries choose compute kernels, and so the resulting bits: they
/// must be equal on all ranks.
inline constexpr std::array kKernelVariables = {
    "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",  "ONEDNN_MAX_CPU_ISA",   "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",          "MKL_NUM_THREADS"};

}  // namespace lockstep::inline internal
