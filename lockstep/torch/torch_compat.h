#pragma once
// The differences between the versions of libtorch that Lockstep takes, 1.13 to 2.x, but for c10d's
// (c10d_engine.h). No file outside this folder asks for the version. Types that only newer versions
// name are deduced instead where that is possible (lockstep/parallel/autograd_hooks.cpp).

#include <ATen/autocast_mode.h>
#include <c10/core/Allocator.h>
#include <torch/version.h>

namespace lockstep::torch_compat {

// libtorch 2.4 has one function for all devices; the earlier ones are deprecated since.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)

inline bool is_autocast_on(at::DeviceType device) {
  return at::autocast::is_autocast_enabled(device);
}

inline at::ScalarType autocast_type(at::DeviceType device) {
  return at::autocast::get_autocast_dtype(device);
}

inline void set_autocast(at::DeviceType device, bool on, at::ScalarType dtype) {
  at::autocast::set_autocast_enabled(device, on);
  at::autocast::set_autocast_dtype(device, dtype);
}

#else

inline bool is_autocast_on(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}

inline at::ScalarType autocast_type(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype()
                            : at::autocast::get_autocast_gpu_dtype();
}

inline void set_autocast(at::DeviceType device, bool on, at::ScalarType dtype) {
  if (device == at::kCPU) {
    at::autocast::set_cpu_enabled(on);
    at::autocast::set_autocast_cpu_dtype(dtype);
  } else {
    at::autocast::set_enabled(on);
    at::autocast::set_autocast_gpu_dtype(dtype);
  }
}

#endif

/// An allocator with the memory of `Memory::allocate(bytes)`. libtorch 2.0 made c10::Allocator's
/// own function non-const, and added one that copies.
template <class Memory>
struct Allocator final : c10::Allocator {
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t bytes) override {
    return Memory::allocate(bytes);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#else
  c10::DataPtr allocate(size_t bytes) const override {
    return Memory::allocate(bytes);
  }
#endif
};

}  // namespace lockstep::torch_compat
