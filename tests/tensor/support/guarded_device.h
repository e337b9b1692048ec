#pragma once
// A test device, "privateuseone", whose memory the host cannot access.

#include <ATen/core/Tensor.h>

#include <atomic>

namespace lockstep::testing {

/// Device `index` of kGuardedDevices. The pages of its tensors are closed except during libtorch's
/// copies. Code that treats them as the CPU's thus ends with SIGSEGV, as with CUDA's. Every
/// operation is done on the CPU, on copies. As with CUDA, backward() runs in a thread of the
/// device, not in the caller's; give each rank thread its own device. Source: PyTorch,
/// test/cpp_extensions/open_registration_extension.cpp.
c10::Device guarded_device(int index);
inline constexpr int kGuardedDevices = 4;

/// The events of all streams of the device.
struct GuardedEvents {
  std::atomic<bool> held = false;  ///< None passes, though its work is done at once.
  std::atomic<int> blocked = 0;    ///< Times that a stream was told to wait for one.
};
inline GuardedEvents guarded_events;

/// Times that the calling thread itself waited for a stream.
int guarded_waits();

/// Turns leaves without a gradient, such as a module's parameters and buffers, into tensors of the
/// guarded device `index` with their values. Module::to() does the same for libtorch's own devices.
void move_to_guarded_device(const std::vector<at::Tensor>& tensors, int index);

}  // namespace lockstep::testing
