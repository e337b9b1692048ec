#include "lockstep/world/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

/// A number, or the name of a device (GPU-..., MIG-...); "-1" and "NoDevFiles" end a list.
bool can_be_device(const std::string& entry) {
  const bool number = !entry.empty() && std::all_of(entry.begin(), entry.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
  });
  return number || entry.starts_with("GPU-") || entry.starts_with("MIG-");
}

int count_devices(const std::string& value) {
  int count = 0;
  for (std::string entry : split(value, ',')) {
    std::erase(entry, ' ');
    if (!can_be_device(entry)) return count;
    ++count;
  }
  return count;
}

}  // namespace

VisibleDevices visible_devices(const Environment& environment) {
  constexpr std::array kNames = {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
                                 "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
  for (const char* name : kNames) {
    const auto found = environment.find(name);
    if (found != environment.end()) return {name, found->second, count_devices(found->second)};
  }
  return {};
}

DeviceChoice choose_device(const VisibleDevices& visible, int local_rank,
                           std::optional<int> given) {
  if (given) return {*given, ""};
  if (visible.variable.empty()) return {local_rank, ""};
  if (visible.count == 0) return {-1, ""};
  if (visible.count == 1) return {0, ""};
  if (local_rank < visible.count) return {local_rank, ""};
  return {
      local_rank % visible.count,
      fmt::format("local rank {} shares device {} with another: {}={} are {} devices", local_rank,
                  local_rank % visible.count, visible.variable, visible.value, visible.count)};
}

}  // namespace lockstep::inline internal
