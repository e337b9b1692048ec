#pragma once
// Averages gradients over all ranks during backward.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/comm_hook.h"
#include "lockstep/error.h"
#include "lockstep/parallel/announced_pass.h"
#include "lockstep/parallel/autograd_hooks.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/parallel/comm_hook_state.h"
#include "lockstep/parallel/gradient_memory.h"
#include "lockstep/parallel/local_reduction.h"
#include "lockstep/parallel/pass_clock.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// The use of parameters in a backward pass.
enum class GraphUse {
  kAll,         ///< All, once each.
  kFindUnused,  ///< Different ones in each pass and on each rank; each at most once.
  kStatic,      ///< The same ones on every rank, as often as in the first pass.
};

struct ReducerOptions {
  int64_t bucket_cap_bytes = 0;
  GraphUse graph = GraphUse::kAll;
  std::shared_ptr<CommHook> hook = nullptr;  ///< Null: the plain average.
  bool measure_wait = false;                 ///< See StepTimings::slowest_wait.
};

/// Receives every gradient of a backward pass and gathers them in buckets, in memory shared with
/// the peers of this host. It starts the averaging of each bucket as soon as the bucket is full.
///
/// Protocol of one step: begin_forward(true); forward; end_forward(outputs); backward. When
/// backward() returns, .grad of every parameter is the average over the ranks. Buckets are reduced
/// strictly in index order, so all ranks issue the same collectives whatever the order of their
/// gradients. Before the second step the buckets are formed anew, in the order in which the
/// gradients of rank 0 became ready in the first.
///
/// kFindUnused: a parameter without a gradient at the end of backward is unused on this rank. It
/// contributes its current .grad (accumulated by no_sync steps), or zeros. Its .grad becomes the
/// average if any rank used it since the last average; otherwise .grad is unchanged. The buckets
/// that hold unused gradients wait for the end of backward; the second forming puts the gradients
/// unused in the first pass last. Cost: one more reduction of a byte per parameter. With kStatic
/// the first pass reduces at its end and learns how often each parameter gets a gradient. From then
/// on unused ones are in no bucket, cost nothing, and keep their .grad.
///
/// A backward that finds .grad undefined is fastest: see GradientMemory. If .grad is defined,
/// autograd adds to it in place; if it is the program's, the average is copied back into it.
///
/// With virtual ranks (see LocalReduction; GraphUse::kAll, no hook) the pass is that of a rank's
/// last virtual rank. Each gradient, when it arrives, becomes the sum over the last of the rank's
/// subtrees. If ranks_add_as_tree() holds, a rank has one subtree, and all_reduce() adds those of
/// all ranks; else SubtreeReduction adds them. The sum is divided by the number of all virtual
/// ranks, once, so that the bits do not depend on the number of ranks.
///
/// All ranks must run the same steps. Errors come out of backward(): those of the group, with the
/// names of the parameters; kMismatch (kStatic: the ranks' first passes differ); kInvalidArgument.
/// The last means that a parameter got no gradient (at the end, with all names) or too many in one
/// pass. Or begin_forward() did not announce the pass. After an error the gradients are not usable,
/// and the next begin_forward() after an interrupted pass throws as well. After a missing gradient
/// the ranks go on if it was missing on all of them; else the next begin_forward() is kMismatch.
///
/// Several reducers may have a parameter in common if they take turns: one without an announced
/// pass ignores gradients of another's. Those of two announced passes are kInvalidArgument, because
/// each would average the same memory.
class Reducer {
 public:
  /// Collective. `parameters`: leaf tensors that require gradients, the same on every rank, on any
  /// device. `local_reduction`: null for the mean over the ranks. Errors: kInvalidArgument (element
  /// type), kUnavailable (no shared memory).
  Reducer(ProcessGroup group, std::vector<NamedTensor> parameters, const ReducerOptions& options,
          LocalReduction* local_reduction = nullptr);
  /// Waits for collectives in progress (at most the group's timeout).
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Announces a forward pass whose backward will be averaged, or (false) only accumulated.
  /// Collective before the second announced pass, and after a missing gradient; `order_root` is the
  /// rank whose order of gradients counts in the former.
  void begin_forward(bool synchronise, int order_root = 0);
  /// Ends the forward pass, which returned these tensors; the same thread will run backward.
  void end_forward(const std::vector<at::Tensor>& outputs);

  /// Collective with a backward pass of the other ranks, after begin_forward(true): contributes
  /// zeros. .grad becomes the same as on them.
  void shadow_pass();
  /// Averages are multiplied by this from now on.
  void set_scale(double scale) { scale_ = scale; }

  /// Collective. The buckets from now on, by parameters' names; none before the first averaged
  /// pass.
  BucketNames settled_buckets();
  /// Collective, before the first pass. Begins with these buckets, so that they are not formed anew
  /// (except by kStatic); parameters without one follow. Returns false, and changes nothing, unless
  /// they name parameters of this model, each once, and one type per bucket.
  bool start_with(const BucketNames& buckets);

  /// Of the last averaged pass; forward is left 0.
  const StepTimings& timings() const { return timings_; }

  /// Buckets in launch order, for tests and logs.
  const std::vector<BucketLayout>& buckets() const { return memory_.buckets(); }

 private:
  enum class Phase { kIdle, kLocal, kArmed, kBackward };
  struct PendingReduction {  ///< A bucket that is being reduced.
    std::vector<Work> works;
    std::function<void()> finish;  ///< The hook's.
  };

  std::vector<std::vector<int>> plan_for(std::span<const int> order) const;
  void form_buckets(const std::vector<std::vector<int>>& plan);
  void form_buckets_in_ready_order(int root);
  void follow_hook();

  void enter(Phase phase);
  void on_backward();
  bool is_of_another_pass(int index) const;
  void on_gradient(int index, const at::Tensor& arrived);
  void start_pass();
  void reset_pass();
  void take_gradient(int index, const at::Tensor& arrived);
  bool check_count(int index) const;
  void mark_ready(int index);
  bool in_flight() const;
  void launch_full_buckets();
  PendingReduction launch(size_t bucket);

  void finish_pass();
  void reduce_rest();
  std::vector<bool> agree_on_use();
  std::vector<bool> agree_on_counts();
  void learn_order();
  void wait_for_pending();
  void measure_wait();
  void warn_of_copies();
  std::string name_of(int index) const { return parameters_[static_cast<size_t>(index)].name; }
  std::vector<std::string> bucket_names(size_t bucket) const;
  Error with_names(const Error& error, size_t bucket) const;
  [[noreturn]] void throw_missing() const;

  ProcessGroup group_;
  std::vector<NamedTensor> parameters_;
  ReducerOptions options_;
  LocalReduction* local_reduction_;
  AnnouncedPass announced_;
  std::vector<int64_t> limits_;
  GradientMemory memory_;
  std::unique_ptr<SubtreeReduction> subtrees_;  ///< Null if all_reduce() adds them.
  bool hooked_;                 ///< Buckets go through options_.hook, which is not a no-op.
  std::vector<int> order_;      ///< The order of gradients for which the buckets were planned.
  std::vector<int> bucket_of_;  ///< By parameter; -1: in none.

  /// Held by the hooks of a pass: if parameters are on several devices, libtorch runs the hooks in
  /// one thread for each device. Guards memory_ and all that follows. The end of a pass comes after
  /// its hooks, and needs no lock.
  Mutex hooks_mutex_;
  Phase phase_ = Phase::kIdle;
  bool first_pass_ = true;
  bool shadowing_ = false;
  bool may_be_ahead_ = false;   ///< This rank ended a pass that others may still be in.
  std::vector<bool> used_;      ///< By parameter, since the last average, including no_sync passes.
  std::vector<int32_t> count_;  ///< By parameter: gradients in this pass.
  std::vector<int32_t> wanted_;  ///< By parameter: gradients in every (kStatic: later) pass.
  std::vector<bool> ready_;      ///< By parameter: staged or contributed in this pass.
  std::vector<int> missing_;     ///< By bucket: gradients that are not ready yet.
  std::vector<PendingReduction> pending_;  ///< By bucket; only launched ones.
  std::vector<int> ready_order_;           ///< In the first averaged pass; then empty.
  int gradients_ = 0;                      ///< In this pass.
  double scale_ = 1;
  PassClock clock_;
  StepTimings timings_;
  PassClock::Time last_end_;    ///< Of the last averaged pass.
  int passes_with_copies_ = 0;  ///< In a row, up to the pass that warned.

  std::shared_ptr<Reducer*> self_;   ///< Held by hooks on outputs, which may outlive this.
  std::vector<GradientHook> hooks_;  ///< Last member: destroyed first, so no hook runs afterwards.
};

}  // namespace lockstep::inline internal
