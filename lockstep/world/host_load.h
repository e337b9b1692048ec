#pragma once
// Load by other programs on this host, which distorts measured figures.

#include <string>

namespace lockstep::inline internal {

struct HostLoad {
  /// Percent of the last 10 s in which some process waited for a core; -1: unknown.
  double cpu_pressure = -1;
  double load = -1;  ///< Mean number of runnable processes in the last minute.
  int cores = 1;

  /// Processes wait for cores a fifth of the time; if that is unknown, there are 1.5 times as many
  /// processes as cores.
  bool busy() const;
  /// "processes wait for a core 90 % of the time (load 8.1 on 2 cores)".
  std::string text() const;
};

/// Pure: of /proc/pressure/cpu and /proc/loadavg; empty: missing.
HostLoad read_load(const std::string& pressure, const std::string& loadavg, int cores);
HostLoad load_of_host();

/// Before a measurement: logs one line if the host is busy; of several ranks only rank 0 does.
void warn_if_busy();

}  // namespace lockstep::inline internal
