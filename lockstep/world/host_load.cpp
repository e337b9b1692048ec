#include "lockstep/world/host_load.h"

#include <fmt/format.h>

#include <cstdio>

#include "lockstep/base/counted.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/world/cores.h"

namespace lockstep::inline internal {

bool HostLoad::busy() const {
  return cpu_pressure >= 0 ? cpu_pressure >= 20 : load >= 1.5 * cores;
}

std::string HostLoad::text() const {
  std::string processes = fmt::format("load {:.1f} on {}", load, counted(cores, "core"));
  if (cpu_pressure < 0) return processes;
  return fmt::format("processes wait for a core {:.0f} % of the time ({})", cpu_pressure,
                     processes);
}

HostLoad read_load(const std::string& pressure, const std::string& loadavg, int cores) {
  HostLoad load;
  load.cores = cores;
  if (std::sscanf(pressure.c_str(), "some avg10=%lf", &load.cpu_pressure) != 1) {
    load.cpu_pressure = -1;
  }
  if (std::sscanf(loadavg.c_str(), "%lf", &load.load) != 1) load.load = -1;
  return load;
}

HostLoad load_of_host() {
  return read_load(read_if_there("/proc/pressure/cpu"), read_if_there("/proc/loadavg"),
                   online_cpus());
}

void warn_if_busy() {
  const HostLoad load = load_of_host();
  if (!load.busy() || env_or("LOCKSTEP_RANK", env_or("RANK", "0")) != "0") return;
  log_warn(fmt::format("this host is busy: {}; the figures say little about it", load.text()));
}

}  // namespace lockstep::inline internal
