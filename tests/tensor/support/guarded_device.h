#pragma once
// A device of its own for tests, "privateuseone": its memory cannot be touched from the host.

#include <ATen/core/Tensor.h>

namespace lockstep::testing {

/// Device `index` of kGuardedDevices. Its tensors lie in pages that are closed except while one of
/// libtorch's copies goes on, so that code which takes them for the CPU's ends with SIGSEGV, as it
/// would with CUDA's. Every operation is done on the CPU, on copies. As with CUDA, backward() runs
/// in a thread of the device, not in the caller's; give each rank that is a thread its own device.
/// Source of how: PyTorch, test/cpp_extensions/open_registration_extension.cpp.
c10::Device guarded_device(int index);
inline constexpr int kGuardedDevices = 4;

/// Makes leaves without a gradient, such as a module's parameters and buffers, tensors of the
/// guarded device `index` with their values: what Module::to() does for devices that libtorch
/// knows.
void move_to_guarded_device(const std::vector<at::Tensor>& tensors, int index);

}  // namespace lockstep::testing
