#pragma once
// The examination of all hosts.

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

struct ExamineOptions {
  std::vector<std::string> hosts;  ///< Empty: this one alone.
  std::string rsh;                 ///< As remote_words() takes it.
  std::string lockstep;            ///< Program on the other hosts.
  std::vector<int> ports;          ///< 0: one of the kernel's choice.
  std::string folder;              ///< Where the job runs, as an absolute path.
  std::string log_folder;          ///< Absolute, or empty.
  std::string hccn_conf;
  bool measure = true;
  double seconds = 0.2;                    ///< Of each stream.
  Deadline::Clock::duration timeout{60s};  ///< For each request to all hosts.
};

/// Starts a probe on each host, all at once, queries them, and ends them. Tries all links at once;
/// measures pairs in rounds in which each host is in one pair. Leaves nothing on any host. Cost:
/// about a second, and two rounds of 0.5 s for each of speed_rounds().
Findings examine(const ExamineOptions& options);

/// Longest time that all requests to so many hosts can take. It limits the life of a probe that
/// nobody ends.
std::chrono::seconds longest_examination(const ExamineOptions& options, size_t num_hosts);

/// Pairs of hosts, each of which is at most once in a round.
using Rounds = std::vector<std::vector<std::pair<int, int>>>;

/// Rounds of a tournament: each pair of `n` hosts meets once.
Rounds tournament(int n);

/// Pairs to measure. Up to 64 hosts: all pairs. More hosts: each with its neighbours in the list,
/// which follows racks, and with some others by lot (the same each time).
Rounds speed_rounds(int n);

}  // namespace lockstep::doctor
