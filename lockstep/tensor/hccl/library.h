#pragma once
// Finds and loads CANN's libraries.

#include <string>

#include "lockstep/tensor/hccl/interface.h"

namespace lockstep::hccl {

/// CANN's functions, after aclInit(); null if they cannot be loaded, and `why_not` receives the
/// reason. Searched once per process: libhccl.so and libascendcl.so where the linker finds them
/// (CANN's set_env.sh sees to that), or both in $LOCKSTEP_HCCL_LIBRARY, as in tests.
const Functions* load_library(std::string* why_not);

/// "HCCL_E_TIMEOUT (error 9): EI0006 ...": the number, and the library's texts for it.
std::string describe(const Functions& functions, int error);

}  // namespace lockstep::hccl
