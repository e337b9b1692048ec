#include "lockstep/launch/agent/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "lockstep/base/text.h"
#include "lockstep/launch/identity.h"

namespace lockstep {
namespace {

int count_devices() {
  int count = 0;
  while (::access(("/dev/nvidia" + std::to_string(count)).c_str(), F_OK) == 0) ++count;
  return count;
}

}  // namespace

Machine this_machine(const Environment& environment) {
  Machine machine;
  machine.cores = usable_cores();
  machine.gpus = count_devices();
  if (const auto visible = environment.find("CUDA_VISIBLE_DEVICES"); visible != environment.end()) {
    const auto& list = visible->second;
    const auto shown = list.empty() || list == "-1" ? 0 : static_cast<int>(split(list, ',').size());
    machine.gpus = std::min(machine.gpus, shown);
  }
  return machine;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace lockstep
