#pragma once
// The part of DistributedDataParallel that does not depend on the module's type.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/parallel/averaging_state.h"
#include "lockstep/parallel/join.h"
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
  /// Whether parameters may be left out of the loss, other ones in each step and on each rank. One
  /// that no rank used keeps its .grad as it is; one that some used gets the average over all, the
  /// others counting as zero. Every rank's backward() must reach at least one parameter: by what
  /// reaches none (as autograd::grad() of an input) nothing is averaged, and the others wait for
  /// this rank until the group's timeout. See Reducer for the cost.
  bool find_unused_parameters = false;
  /// The promise that in every step the same parameters get as many gradients as in the first, on
  /// all ranks. Parameters may then be left out, at no cost, or get several gradients in one
  /// backward() (one within another, as when activations are computed anew). Where one is within
  /// another, forward() must return its tensors so that visit_tensors() (output_tensors.h) finds
  /// them: alone, or in tuples, optionals and containers, but not in a struct of one's own. Not
  /// together with find_unused_parameters.
  bool static_graph = false;
  /// How gradients are averaged; null: exactly. One object a model and rank. See make_comm_hook().
  std::shared_ptr<CommHook> comm_hook = nullptr;
  /// Whether StepTimings::slowest_wait is measured: one reduction of 8 bytes a step.
  bool measure_wait = false;

  /// Errors: kInvalidArgument naming the fields and their values.
  void validate() const;
};

/// What a parameter's gradient hangs on.
struct ParameterKind {
  bool requires_grad = false;
  at::ScalarType type = at::kFloat;
  at::Device device = at::kCPU;
};

/// See DistributedDataParallel for what each function promises.
class DdpCore {
 public:
  DdpCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group, const DdpOptions& options);

  void before_forward();
  /// Whether after_forward() looks at what it is given.
  bool wants_outputs() const;
  void after_forward(const std::vector<at::Tensor>& outputs);
  std::vector<at::Tensor> parameters() const;
  void zero_grad();
  void train(bool on);
  bool is_training() const;
  StepTimings timings() const;

  std::vector<AveragingState> averaging_state();
  std::string load_averaging_state(const AveragingState& own);

  const ShardRange& shards() const { return range_; }
  void enter_shard(int index);
  void leave_shard();
  /// The step failed in a shard.
  void abandon_shards();

  void begin_join(const JoinOptions& options);
  void end_join();
  void leave_join();

 private:
  void check_parameters() const;
  friend class NoSync;

  void make_equal(ProcessGroup& group, const DdpOptions& options,
                  const std::vector<NamedTensor>& buffers) const;
  bool synchronises() const;
  void begin_round(const JoinRound& round);

  std::shared_ptr<torch::nn::Module> module_;
  ProcessGroup group_;
  std::vector<NamedTensor> parameters_;
  std::vector<ParameterKind> kinds_;  ///< Of these, when the model was made.
  std::shared_ptr<CommHook> hook_;
  ShardRange range_;
  std::unique_ptr<ShardFold> fold_;           ///< None without DdpOptions::shards.
  std::unique_ptr<Reducer> reducer_;          ///< None in a group of one.
  std::unique_ptr<BufferBroadcast> buffers_;  ///< None when there is nothing to broadcast.
  int no_sync_depth_ = 0;
  std::optional<JoinSession> join_;  ///< Within join().
  std::optional<int> shard_;         ///< Of this rank's, the one entered.
  PassClock::Time forward_begin_;
  double forward_ms_ = 0, buffers_ms_ = 0;
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
