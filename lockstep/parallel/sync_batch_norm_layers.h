#pragma once
// Layers of a module that take their statistics from all ranks: their time, and whether there are
// any.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "lockstep/process_group.h"
#include "lockstep/sync_batch_norm.h"

namespace lockstep::inline internal {

/// Time that layers have spent in collectives so far, including waits for slower ranks, in all
/// threads: a device's backward has its own thread.
class CollectiveTime {
 public:
  void add(std::chrono::nanoseconds time) { ns_ += time.count(); }
  double seconds() const { return static_cast<double>(ns_) / 1e9; }

 private:
  std::atomic<int64_t> ns_ = 0;
};

/// lockstep::convert_sync_batchnorm(). `time` grows by what the layers spend in collectives from
/// then on.
int convert_sync_batchnorm(torch::nn::Module& module, const ProcessGroup& group,
                           std::shared_ptr<CollectiveTime> time);

/// Whether a layer of `module` in training mode is a SyncBatchNorm, or was changed by
/// convert_sync_batchnorm() for a group of several ranks.
bool has_sync_batchnorm(torch::nn::Module& module);

}  // namespace lockstep::inline internal
