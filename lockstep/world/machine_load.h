#pragma once
// Whether others use this machine's cores, so that figures measured here mean little.

#include <string>

namespace lockstep {

struct MachineLoad {
  /// Percent of the last 10 s in which something waited for a core; -1: unknown.
  double cpu_pressure = -1;
  double load = -1;  ///< Mean number of processes that ran, or wanted to, in the last minute.
  int cores = 1;

  /// Something waits for cores a fifth of the time; where that is not told, there are 1.5 times as
  /// many processes as cores.
  bool busy() const;
  /// "processes wait for a core 90 % of the time (load 8.1 on 2 cores)".
  std::string text() const;
};

/// Pure: of /proc/pressure/cpu and /proc/loadavg; empty: not there.
MachineLoad read_load(const std::string& pressure, const std::string& loadavg, int cores);
MachineLoad this_machines_load();

/// Before a measurement: one line where the machine is busy; of several ranks rank 0's alone.
void warn_if_busy();

}  // namespace lockstep
