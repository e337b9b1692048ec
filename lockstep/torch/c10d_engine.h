#pragma once
// The engine of one kind of device in c10d, which libtorch 2.0 split from the group of all ranks.

#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace lockstep::torch_compat {

#if TORCH_VERSION_MAJOR >= 2
using C10dEngine = ::c10d::Backend;
#else
using C10dEngine = ::c10d::ProcessGroup;
#endif

}  // namespace lockstep::torch_compat
