#pragma once
// A communication hook replaces the plain average of gradients in a data parallel model. This
// header has the interface for one's own, and the built-in hooks.
//
// Use:
//   struct HalfBytes final : lockstep::CommHook {  // gradients travel as float16
//     std::function<void()> start(const lockstep::GradientBucket& bucket,
//                                 lockstep::ProcessGroup& group) override {
//       const auto flat = bucket.flat, sent = (flat / group.size()).to(torch::kHalf);
//       auto work = lockstep::all_reduce(group, sent, lockstep::ReduceOp::kSum, {.async = true});
//       return [=]() mutable { work.wait(); flat.copy_(sent); };  // at the end of backward()
//     }
//   };
//   auto model = lockstep::DistributedDataParallel(
//       net, group, {.comm_hook = std::make_shared<HalfBytes>()});
//
// Threads: one model calls its hook, one call at a time, in the threads of forward() and
// backward(). So a hook needs no lock, and serves one model.
// Cost: a hook gets flat buckets, so gradients are packed by a copy, unless one alone fills a
// bucket. Those of a device are copied to the host and back. Each built-in hook names its own cost.
// Errors: backward() rethrows those of start() and of the function that it returned.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/process_group.h"

namespace lockstep {

/// The gradients that one call of a hook handles, all of one element type.
struct GradientBucket {
  int index = 0;                      ///< From 0, in the order in which buckets are sent.
  bool last = false;                  ///< Of this backward pass.
  at::Tensor flat;                    ///< (n): all of them, on the host, as a rule in memory shared
                                      ///< with the peers. Do not keep it longer than this pass.
  std::vector<at::Tensor> gradients;  ///< Each in its shape: views of `flat`. Up to 60 zero bytes
                                      ///< lie between them, so that each starts aligned.
  std::vector<std::string> names;     ///< Of their parameters.
};

/// State of a hook on one rank between steps, under names that the hook chooses; dense, on the CPU.
using HookState = std::map<std::string, at::Tensor>;

/// State of the averaging of gradients on one rank between steps, for a checkpoint.
struct CommHookState {
  /// Conditions for loading: "hook" (CommHook::describe()), "ranks", and "buckets", the names of
  /// their parameters with an empty line between two buckets. Empty: there is no state.
  std::map<std::string, std::string> about;
  HookState tensors;
};

/// Replaces the averaging of gradients over the ranks: give one to DdpOptions::comm_hook.
///
/// One object serves one model on one rank. It may keep state between calls, by bucket index, until
/// buckets_changed().
class CommHook {
 public:
  virtual ~CommHook() = default;

  /// Starts the communication of one bucket. backward() calls it in its own thread, bucket by
  /// bucket, once the bucket's gradients are complete. Use {.async = true} to overlap a collective
  /// with the rest of backward.
  ///
  /// The returned function runs at the end of backward(), in the order of the buckets. It waits for
  /// the collectives and leaves the gradient in `flat`: the same bits on every rank, normally the
  /// average (the hook divides by group.size()). It may communicate too. Every rank starts the same
  /// collectives in the same order. backward() rethrows exceptions of either function.
  virtual std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) = 0;

  /// One line that describes the hook, with all settings that must be the same on every rank; the
  /// constructor of the model compares it. By default the type's name.
  virtual std::string describe() const;

  /// The buckets were formed anew: from index `first` on there are others, or none. This happens
  /// between the first and the second step, and whenever the result of is_noop() changes.
  virtual void buckets_changed(int /*first*/) {}

  /// Called before each averaged step; the result must be the same on every rank. With true the
  /// step runs as without a hook, with the same bits and at the same cost. A change of the result
  /// forms the buckets anew.
  virtual bool is_noop() const { return false; }
  /// Called at the end of each averaged step's backward(), with its duration on this rank. It may
  /// communicate.
  virtual void after_step(double /*backward_ms*/, ProcessGroup& /*group*/) {}

  /// State to checkpoint so that a resumed run is bit-identical. Names, types and shapes are the
  /// same on every rank. Read it before the next step. None for a hook without state. A hook with
  /// state also implements load_state().
  virtual std::optional<HookState> state() const { return std::nullopt; }
  /// Called before the first start(): continues from the state() of this rank, with the same
  /// buckets. Errors: kCorrupt; start() may also throw it.
  virtual void load_state(const HookState& state);
};

/// The names that make_comm_hook() accepts: "none", "auto", "fp16", "bf16", "int8", "powersgd".
const std::vector<std::string>& comm_hook_names();

/// A fresh hook:
///   none  null: the plain average;
///   auto  none or bf16, whichever is faster in a trial of 17 steps;
///   fp16  gradients travel as float16, divided by the number of ranks before rounding, so that
///         sums do not overflow; half the bytes of float32, and one pass to narrow, one to widen;
///   bf16  the same in bfloat16: less exact, but with the range of float32;
///   int8  8-bit numbers with one scale per 256 of them; rounding errors are carried over; about a
///         quarter of the bytes of float32;
///   powersgd  matrices as products of thin ones, after 1000 exact steps; two reductions one after
///         the other.
/// float16 and bfloat16 are added in float32 and rounded once per addition; results are equal on
/// all ranks. Gradients of types other than float32 and float64 travel unchanged.
/// Errors: kInvalidArgument for another name, with the nearest known one.
std::shared_ptr<CommHook> make_comm_hook(const std::string& name);

// Averages gradients over all ranks at first, later only among near ranks, and then weights
// periodically.

struct PostLocalSgdOptions {
  int64_t start_step = 100;  ///< Steps with gradients averaged over all ranks; at least 1.
  int64_t period = 4;        ///< Steps between two averages of weights after that; at least 1.

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

/// Post-local SGD, for slow links between hosts. After `start_step` steps it averages gradients
/// only among the ranks of `near` (the ranks of a host, or one rank for no average). So ranks drift
/// apart, and every `period` steps their weights are averaged over all.
///
/// Use:
///   lockstep::PostLocalSgd local(group, group.subgroup({group.rank()}), {.start_step = 1000});
///   auto model = lockstep::DistributedDataParallel(
///       net, group, {.broadcast_buffers = false, .comm_hook = local.hook()});
///   loss_of(model.forward(images), labels).backward();
///   optimizer.step();
///   local.after_step(model.parameters());
///
/// Between two averages weights differ from rank to rank, on purpose: call average() before a
/// checkpoint or an evaluation. Each rank has its own optimizer state. It also keeps its own
/// running statistics, or, with broadcast_buffers, takes rank 0's in each step. Pass buffers of
/// floating types to average() too if they matter.
/// Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
class PostLocalSgd {
 public:
  /// `near`: a group that contains this rank; the groups of all ranks together cover `all`.
  /// Errors: kInvalidArgument as PostLocalSgdOptions::validate(). The groups are not checked.
  PostLocalSgd(ProcessGroup all, ProcessGroup near, const PostLocalSgdOptions& options = {});

  /// The hook for this rank's model; it counts the steps.
  std::shared_ptr<CommHook> hook() const;

  /// Call after each optimizer step. Collective over all ranks when it averages: every `period`
  /// steps, counted from start_step. Returns whether it averaged.
  bool after_step(const std::vector<at::Tensor>& parameters);
  /// Collective: gives all ranks the mean of their values, and returns when it is there. Cost: one
  /// all_reduce_coalesced per type; a tensor that is not contiguous is copied. Errors: those of the
  /// group.
  void average(const std::vector<at::Tensor>& tensors);

 private:
  class Hook;
  ProcessGroup all_;
  PostLocalSgdOptions options_;
  std::shared_ptr<Hook> hook_;
};

}  // namespace lockstep
