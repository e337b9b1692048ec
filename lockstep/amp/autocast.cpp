#include "lockstep/autocast.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/torch/torch_compat.h"

namespace lockstep {
namespace {

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

AutocastGuard::AutocastGuard(at::DeviceType device, at::ScalarType dtype)
    : device_(supported(device)),
      was_on_(torch_compat::is_autocast_on(device)),
      old_dtype_(torch_compat::autocast_type(device)) {
  torch_compat::set_autocast(device_, true, dtype);
  at::autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  torch_compat::set_autocast(device_, was_on_, old_dtype_);
}

}  // namespace lockstep
