#pragma once
// Asking all hosts.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

struct ExamineOptions {
  std::vector<std::string> hosts;  ///< Empty: this one alone.
  std::vector<std::string> rsh;    ///< Words before the host's name.
  std::string lockstep;            ///< Program on the other hosts.
  std::vector<int> ports;          ///< 0: one of the kernel's choice.
  std::string folder;              ///< Where the job runs, as an absolute path.
  std::string log_folder;          ///< Absolute, or empty.
  std::string hccn_conf;
  bool measure = true;
  double seconds = 0.2;                    ///< Of each stream.
  Deadline::Clock::duration timeout{60s};  ///< For each question to all hosts.
};

/// Starts a probe on each host, all at once, asks, and ends them. Links are tried all at once;
/// pairs are measured in rounds in which each host is in one pair. Nothing is left on any host.
/// Cost: about a second, and 2(n-1) rounds of 0.5 s for n hosts.
Findings examine(const ExamineOptions& options);

/// Longest that all questions to so many hosts can take, when each host takes its time: how long a
/// probe lives that nobody ends.
std::chrono::seconds longest_examination(const ExamineOptions& options, size_t num_hosts);

/// Rounds of a tournament: each pair of `n` meets once, each host at most once a round.
std::vector<std::vector<std::pair<int, int>>> tournament(int n);

}  // namespace lockstep::doctor
