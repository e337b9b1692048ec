#pragma once
// Averages gradients over all ranks while backward goes on.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm_hook.h"
#include "lockstep/error.h"
#include "lockstep/parallel/autograd_hooks.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/parallel/comm_hook_state.h"
#include "lockstep/parallel/gradient_memory.h"
#include "lockstep/parallel/pass_clock.h"
#include "lockstep/parallel/virtual_rank_fold.h"
#include "lockstep/process_group.h"

namespace lockstep {

/// Which parameters take part in a backward pass.
enum class GraphUse {
  kAll,         ///< Each, once.
  kFindUnused,  ///< Other ones in each pass and on each rank; each at most once.
  kStatic,      ///< The same ones on every rank as often as in the first pass.
};

struct ReducerOptions {
  int64_t bucket_cap_bytes = 0;
  GraphUse graph = GraphUse::kAll;
  std::shared_ptr<CommHook> hook = nullptr;  ///< Null: the plain average.
  bool measure_wait = false;                 ///< See StepTimings::slowest_wait.
};

/// Sees every gradient of a backward pass, gathers them in buckets in memory shared with the peers
/// of this host, and starts the averaging of each bucket as soon as it is full.
///
/// Protocol of one step: begin_forward(true); forward; end_forward(outputs); backward. When
/// backward() returns, .grad of every parameter is the average over the ranks. Buckets are reduced
/// strictly in index order, so all ranks issue the same collectives whatever order their gradients
/// come in. Before the second step the buckets are formed anew in the order in which the gradients
/// of rank 0 got ready in the first.
///
/// kFindUnused: what has no gradient when backward ends is unused on this rank. It contributes its
/// .grad as it is (what no_sync steps accumulated), or zeros, and gets the average if any rank used
/// it since the last average; otherwise its .grad is not touched. The buckets that hold unused
/// gradients wait for the end of backward; the second forming puts those of the first pass last.
/// Cost: one reduction of a byte a parameter more.
/// kStatic: the first pass reduces at its end and learns how often each parameter gets a gradient;
/// from then on unused ones are in no bucket, at no cost, and their .grad is not touched.
///
/// Fastest is a backward that finds .grad undefined: see GradientMemory. Where .grad is defined,
/// autograd adds to it in place, and the average is copied back into it where it is the program's.
///
/// With virtual ranks (see VirtualRankFold; GraphUse::kAll, no hook) the pass is that of a rank's
/// last virtual rank: each gradient becomes the sum over the last of the rank's subtrees as it
/// arrives. A rank has one subtree where ranks_add_as_tree() holds, and all_reduce() adds those of
/// all ranks; elsewhere SubtreeReduction adds them. The sum is divided by the number of all virtual
/// ranks, once, so that the bits do not depend on the number of ranks.
///
/// All ranks must run the same steps. Errors come out of backward(): those of the group, with the
/// names of the parameters; kMismatch (kStatic: the ranks' first passes differ); kInvalidArgument
/// when a parameter got no gradient (at the end, names all of them) or too many in one pass, or
/// when a pass runs that no begin_forward() announced. After an error the gradients are not usable,
/// and the next begin_forward() after an interrupted pass throws as well.
class Reducer {
 public:
  /// Collective. `parameters`: leaf tensors that require gradients, the same on every rank, on any
  /// device. `fold`: null for the mean over the ranks. Errors: kInvalidArgument (element type),
  /// kUnavailable (no shared memory).
  Reducer(ProcessGroup group, std::vector<NamedTensor> parameters, const ReducerOptions& options,
          VirtualRankFold* fold = nullptr);
  /// Waits for collectives under way (at most the group's timeout).
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Announces a forward pass whose backward shall be averaged, or (false) only be accumulated.
  /// Collective before the second announced pass; `order_root` is the rank whose order of
  /// gradients counts there.
  void begin_forward(bool synchronise, int order_root = 0);
  /// The forward pass is over and gave these tensors; the same thread will run backward.
  void end_forward(const std::vector<at::Tensor>& outputs);

  /// Collective with a backward pass of the other ranks, after begin_forward(true): contributes
  /// zeros. .grad becomes what it becomes on them.
  void shadow_pass();
  /// Averages are multiplied by this from now on.
  void set_scale(double scale) { scale_ = scale; }

  /// Collective. The buckets as they are from now on, by parameters' names; none before the first
  /// averaged pass.
  BucketNames settled_buckets();
  /// Collective, before the first pass. Begins with these buckets, so that they are not formed anew
  /// (but by what kStatic learns); parameters without one follow. Returns false, and changes
  /// nothing, when they do not name parameters of this, each once, of one type a bucket.
  bool start_with(const BucketNames& buckets);

  /// Of the last averaged pass; forward is left 0.
  const StepTimings& timings() const { return timings_; }

  /// Buckets in launch order, for tests and logs.
  const std::vector<BucketLayout>& buckets() const { return memory_.buckets(); }

 private:
  enum class Phase { kIdle, kLocal, kArmed, kBackward };
  struct PendingReduction {  ///< A bucket on its way.
    std::vector<Work> works;
    std::function<void()> finish;  ///< Of a hook.
  };

  std::vector<std::vector<int>> plan_for(std::span<const int> order) const;
  void form_buckets(const std::vector<std::vector<int>>& plan);
  void form_buckets_in_ready_order(int root);
  void follow_hook();

  void on_backward();
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
  VirtualRankFold* fold_;
  std::vector<int64_t> limits_;
  GradientMemory memory_;
  std::unique_ptr<SubtreeReduction> subtrees_;  ///< Null where all_reduce() does.
  bool hooked_;                                 ///< Buckets go by options_.hook, which is no no-op.
  std::vector<int> order_;      ///< Of the gradients, that the buckets were planned for.
  std::vector<int> bucket_of_;  ///< By parameter; -1: in none.

  Phase phase_ = Phase::kIdle;
  bool first_pass_ = true;
  bool shadowing_ = false;
  std::vector<bool> used_;       ///< By parameter, since the last average, no_sync passes too.
  std::vector<int32_t> count_;   ///< By parameter: gradients in this pass.
  std::vector<int32_t> wanted_;  ///< By parameter: gradients in every pass, kStatic's after one.
  std::vector<bool> ready_;      ///< By parameter: staged or contributed in this pass.
  std::vector<int> missing_;     ///< By bucket: gradients that are not ready yet.
  std::vector<PendingReduction> pending_;  ///< By bucket: the first so many were launched.
  std::vector<int> ready_order_;           ///< Of the first averaged pass; then empty.
  int gradients_ = 0;                      ///< In this pass.
  double scale_ = 1;
  PassClock clock_;
  StepTimings timings_;
  PassClock::Time last_end_;    ///< Of the last averaged pass.
  int passes_with_copies_ = 0;  ///< In a row, up to the one that warned.

  std::shared_ptr<Reducer*> self_;   ///< What hooks on outputs, which may outlive this, hold.
  std::vector<GradientHook> hooks_;  ///< Last member: goes first, nothing fires afterwards.
};

}  // namespace lockstep
