#include "lockstep/comm/device_name.h"

namespace lockstep::inline internal {
namespace {

std::string (*device_namer)(const World& world) = nullptr;

}  // namespace

bool register_devices(std::string (*namer)(const World& world)) {
  device_namer = namer;
  return true;
}

std::string name_device(const World& world) {
  return device_namer == nullptr ? "" : device_namer(world);
}

}  // namespace lockstep::inline internal
