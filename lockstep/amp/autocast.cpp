#include "lockstep/autocast.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "lockstep/error.h"

// libtorch 2.4 has one function for all devices; the earlier ones are deprecated since.
#define LOCKSTEP_AUTOCAST_BY_DEVICE \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4))

namespace lockstep {
namespace {

namespace autocast = at::autocast;

#if LOCKSTEP_AUTOCAST_BY_DEVICE

bool is_on(at::DeviceType device) {
  return autocast::is_autocast_enabled(device);
}

void set(at::DeviceType device, bool on, at::ScalarType dtype) {
  autocast::set_autocast_enabled(device, on);
  autocast::set_autocast_dtype(device, dtype);
}

#else

bool is_on(at::DeviceType device) {
  return device == at::kCPU ? autocast::is_cpu_enabled() : autocast::is_enabled();
}

void set(at::DeviceType device, bool on, at::ScalarType dtype) {
  if (device == at::kCPU) {
    autocast::set_cpu_enabled(on);
    autocast::set_autocast_cpu_dtype(dtype);
  } else {
    autocast::set_enabled(on);
    autocast::set_autocast_gpu_dtype(dtype);
  }
}

#endif

at::DeviceType supported(at::DeviceType device) {
  if (device == at::kCPU || device == at::kCUDA) return device;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("mixed precision is for cpu and cuda, not for {}",
                          c10::DeviceTypeName(device, /*lower_case=*/true)));
}

}  // namespace

at::ScalarType low_precision(at::DeviceType device) {
  return supported(device) == at::kCPU ? at::kBFloat16 : at::kHalf;
}

at::ScalarType autocast_type(at::DeviceType device) {
#if LOCKSTEP_AUTOCAST_BY_DEVICE
  return autocast::get_autocast_dtype(device);
#else
  return device == at::kCPU ? autocast::get_autocast_cpu_dtype()
                            : autocast::get_autocast_gpu_dtype();
#endif
}

AutocastGuard::AutocastGuard(at::DeviceType device, at::ScalarType dtype)
    : device_(supported(device)), was_on_(is_on(device)), old_dtype_(autocast_type(device)) {
  set(device_, true, dtype);
  autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  set(device_, was_on_, old_dtype_);
}

}  // namespace lockstep
