#include "lockstep/launch/job/machine.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/device.h"
#include "lockstep/world/identity.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool is_numbered(const std::string& name, const std::string& prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

/// Entries of a folder; none where it is not there.
std::vector<std::string> names_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (auto entry = fs::directory_iterator(folder, failure);
       !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

int count_numbered(const std::string& folder, const std::string& prefix) {
  const auto names = names_of(folder);
  return static_cast<int>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return is_numbered(name, prefix);
  }));
}

/// What draws on a screen has such a device too, so the maker counts; and what computes has kfd.
int count_amd(const std::string& root) {
  if (!fs::exists(root + "/dev/kfd")) return 0;
  int count = 0;
  for (const std::string& name : names_of(root + "/dev/dri")) {
    if (!is_numbered(name, "renderD")) continue;
    // A device without a maker is none of a PCI bus.
    const auto maker = read_if_there(root + "/sys/class/drm/" + name + "/device/vendor");
    count += maker.starts_with("0x1002") ? 1 : 0;
  }
  return count;
}

}  // namespace

int count_accelerators(const std::string& root) {
  if (const int nvidia = count_numbered(root + "/dev", "nvidia"); nvidia > 0) return nvidia;
  // The devices' files are made when they are first used.
  const auto known = names_of(root + "/proc/driver/nvidia/gpus").size();
  if (known > 0) return static_cast<int>(known);
  if (const int ascend = count_numbered(root + "/dev", "davinci"); ascend > 0) return ascend;
  return count_amd(root);
}

Machine this_machine(const Environment& environment) {
  Machine machine;
  machine.cores = usable_cores();
  machine.gpus = count_accelerators();
  const auto visible = visible_devices(environment);
  if (!visible.variable.empty()) machine.gpus = std::min(machine.gpus, visible.count);
  return machine;
}

}  // namespace lockstep
