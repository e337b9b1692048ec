#pragma once
// The traffic of a collective and nothing else: the limit of this machine's memory.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::app {

/// Shared by the ranks: make it before the fork. It has no errors, and waits only by spinning: a
/// bound, not a transport.
class MemoryCeiling {
 public:
  /// Two buffers of `bytes` per rank. Errors: kUnavailable.
  MemoryCeiling(int ranks, int64_t bytes);
  ~MemoryCeiling();
  MemoryCeiling(const MemoryCeiling&) = delete;
  MemoryCeiling& operator=(const MemoryCeiling&) = delete;

  /// One pass of this rank's share of `op` over buffers of `bytes`, between two barriers. Returns
  /// its duration on this rank, in seconds.
  double pass(const char* op, int rank, int64_t bytes);

 private:
  struct Gate {
    std::atomic<int> came;
    std::atomic<int> round;
  };
  float* buffer(int rank, int which) const;
  void barrier();
  void touch(const char* op, int rank, int64_t bytes);

  int ranks_;
  int64_t stride_;
  int64_t total_;
  std::byte* memory_;
  Gate* gate_;
};

}  // namespace lockstep::app
