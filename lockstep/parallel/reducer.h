#pragma once
// Averages gradients over all ranks while backward goes on.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/parallel/autograd_hooks.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/parallel/gradient_memory.h"
#include "lockstep/parallel/shard_fold.h"

namespace lockstep {

/// Sees every gradient of a backward pass, gathers them in buckets in memory shared with the peers
/// of this host, and starts the averaging of each bucket as soon as it is full.
///
/// Protocol of one step: begin_forward(true); forward; end_forward(); backward. When backward()
/// returns, .grad of every parameter is the average over the ranks. Buckets are reduced strictly in
/// index order, so all ranks issue the same collectives whatever order their gradients come in.
/// Before the second step the buckets are formed anew in the order in which the gradients of rank 0
/// got ready in the first.
///
/// Fastest is a backward that finds .grad undefined: see GradientMemory. Where .grad is defined,
/// autograd adds to it in place.
///
/// With shards (see ShardFold) the pass is that of a rank's last shard: each gradient becomes the
/// sum over the rank's shards as it arrives, and the ranks' sums are divided by the number of all
/// shards, once, so that the bits do not depend on the number of ranks.
///
/// All ranks must run the same steps. Errors come out of backward(): those of the group;
/// kInvalidArgument when a parameter got no gradient (at the end, names all of them) or two in one
/// pass, or when a pass runs that no begin_forward() announced. After an error the gradients are
/// not usable, and the next begin_forward() after an interrupted pass throws as well.
class Reducer {
 public:
  /// Collective. `parameters`: leaf tensors on the CPU that require gradients, the same on every
  /// rank. `fold`: null for the mean over the ranks. Errors: kInvalidArgument (element type,
  /// device), kUnavailable (no shared memory).
  Reducer(ProcessGroup group, std::vector<NamedTensor> parameters, int64_t bucket_cap_bytes,
          ShardFold* fold = nullptr);
  /// Waits for collectives under way (at most the group's timeout).
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Announces a forward pass whose backward shall be averaged, or (false) only be accumulated.
  /// Collective before the second announced pass.
  void begin_forward(bool synchronise);
  /// The forward pass is over; the same thread will run backward.
  void end_forward() { memory_.serving(true); }

  /// How long the end of the last averaged pass waited for the network, in milliseconds.
  double comm_exposed_ms() const { return exposed_ms_; }

  /// Buckets in launch order, for tests and logs.
  const std::vector<BucketLayout>& buckets() const { return memory_.buckets(); }

 private:
  enum class Phase { kIdle, kLocal, kArmed, kBackward };

  void form_buckets(const std::vector<std::vector<int>>& plan);
  void form_buckets_in_ready_order();
  void on_gradient(int index, const at::Tensor& arrived);
  void start_pass();
  void take_gradient(int index, const at::Tensor& arrived);
  void launch_full_buckets();
  void finish_pass();
  void wait_for_launched();
  [[noreturn]] void throw_missing() const;

  ProcessGroup group_;
  std::vector<NamedTensor> parameters_;
  ShardFold* fold_;
  std::vector<int64_t> limits_;
  GradientMemory memory_;
  std::vector<int> bucket_of_;  ///< By parameter.

  Phase phase_ = Phase::kIdle;
  std::vector<bool> arrived_;          ///< By parameter, in this pass.
  std::vector<int> missing_;           ///< By bucket: gradients that have not come yet.
  size_t launched_ = 0;                ///< Buckets launched in this pass: the first so many.
  std::vector<Work> works_;            ///< Theirs.
  std::vector<at::Tensor> in_flight_;  ///< Keeps what they write alive if backward() ends early.
  std::vector<int> ready_order_;       ///< Of the first averaged pass; then empty.
  bool first_pass_ = true;
  double exposed_ms_ = 0;

  std::vector<GradientHook> hooks_;  ///< Last member: goes first, nothing fires afterwards.
};

}  // namespace lockstep
