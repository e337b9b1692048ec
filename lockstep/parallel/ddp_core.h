#pragma once
// The part of DistributedDataParallel that does not depend on the module's type.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/reducer.h"
#include "lockstep/parallel/shard_fold.h"
#include "lockstep/parallel/shards.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

struct DdpOptions {
  /// Bound of a bucket in MiB, greater than 0. Larger: fewer messages; smaller: they start earlier.
  /// The first bucket holds at most 1 MiB.
  double bucket_cap_mb = 25;
  /// Whether forward() in training gives every rank the buffers of rank 0. Must be true with
  /// `shards`, which average buffers instead.
  bool broadcast_buffers = true;
  /// Parts of the global batch; see DistributedDataParallel::for_each_shard(). 0: one a rank.
  int shards = 0;

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

/// See DistributedDataParallel for what each function promises.
class DdpCore {
 public:
  DdpCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group, const DdpOptions& options);

  void before_forward();
  void after_forward();
  std::vector<at::Tensor> parameters() const;
  void zero_grad();
  void train(bool on);
  bool is_training() const;
  double comm_exposed_ms() const;

  const ShardRange& shards() const { return range_; }
  void enter_shard(int index);
  void leave_shard();

 private:
  friend class NoSync;

  void make_equal(ProcessGroup& group, const DdpOptions& options,
                  const std::vector<NamedTensor>& buffers) const;
  bool synchronises() const;

  std::shared_ptr<torch::nn::Module> module_;
  std::vector<NamedTensor> parameters_;
  ShardRange range_;
  std::unique_ptr<ShardFold> fold_;           ///< None without DdpOptions::shards.
  std::unique_ptr<Reducer> reducer_;          ///< None in a group of one.
  std::unique_ptr<BufferBroadcast> buffers_;  ///< None when there is nothing to broadcast.
  int no_sync_depth_ = 0;
  std::optional<int> shard_;  ///< Of this rank's, the one entered.
};

/// Holds off the averaging of gradients; see DistributedDataParallel::no_sync().
class NoSync {
 public:
  explicit NoSync(DdpCore& core) : core_(core) { ++core_.no_sync_depth_; }
  ~NoSync() { --core_.no_sync_depth_; }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  DdpCore& core_;
};

}  // namespace lockstep
