#pragma once
// A set of CPUs in shared memory: cpu_set_t ends at 1,024 of them.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/world/cpu_topology.h"

namespace lockstep::shm {

/// All zero: empty.
struct CpuSet {
  static constexpr size_t kBits = 64;
  uint64_t words[kMaxCpus / kBits];

  /// `cpus`: numbers below kMaxCpus, as usable_cpus() gives them.
  void add(const std::vector<int>& cpus) {
    for (const int cpu : cpus) {
      const auto bit = static_cast<size_t>(cpu);
      words[bit / kBits] |= uint64_t{1} << (bit % kBits);
    }
  }
  void add(const CpuSet& other) {
    for (size_t i = 0; i < kMaxCpus / kBits; ++i) words[i] |= other.words[i];
  }
  int count() const {
    int cpus = 0;
    for (const uint64_t word : words) cpus += std::popcount(word);
    return cpus;
  }
};

}  // namespace lockstep::shm
