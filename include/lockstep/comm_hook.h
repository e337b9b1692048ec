#pragma once
// How the gradients of a bucket are averaged, when it is not by a plain reduction.

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/process_group.h"

namespace lockstep {

/// The gradients that one call of a hook is for, all of one element type.
struct GradientBucket {
  int index = 0;                      ///< From 0, in the order in which buckets are sent.
  bool last = false;                  ///< Of this backward pass.
  at::Tensor flat;                    ///< (n): all of them, on the host, as a rule in memory shared
                                      ///< with the peers. Do not keep it longer than this pass.
  std::vector<at::Tensor> gradients;  ///< Each in its shape: views of flat. Between them lie
                                      ///< zeros, up to 60 bytes, so that each starts aligned.
  std::vector<std::string> names;     ///< Of their parameters.
};

/// What a hook of one rank remembers between steps, by names of its own; dense, on the CPU.
using HookState = std::map<std::string, at::Tensor>;

/// What the averaging of gradients remembers between steps on one rank, to save and to go on from.
struct CommHookState {
  /// What it fits: "hook" (CommHook::describe()), "ranks", and "buckets", the names of their
  /// parameters, an empty line between two buckets. Empty: there is nothing to remember.
  std::map<std::string, std::string> about;
  HookState tensors;
};

/// Replaces the averaging of gradients over the ranks: give one to DdpOptions::comm_hook.
///
/// One object serves one model on one rank; it may keep state between calls, by bucket index, until
/// buckets_changed().
class CommHook {
 public:
  virtual ~CommHook() = default;

  /// Called within backward(), in its thread, for one bucket after the other, when the bucket's
  /// gradients are there: starts what communicates, with {.async = true} where it shall overlap
  /// with the rest of backward, and returns what finishes it.
  ///
  /// What it returns is called at the end of backward(), in the order of the buckets, waits for
  /// the collectives, and must leave in `flat` what is to be the gradient: the same bits on every
  /// rank, normally the average (the hook divides by group.size()). It may communicate too.
  /// Every rank starts the same collectives in the same order. What either throws comes out of
  /// backward().
  virtual std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) = 0;

  /// What it is and does, in one line, with all that must be the same on every rank, which is
  /// checked when a model is made. The type's name unless a hook knows better.
  virtual std::string describe() const;

  /// Buckets were formed anew: from index `first` on there are others, or none. Happens between the
  /// first step and the second, and where is_noop() changes its answer.
  virtual void buckets_changed(int /*first*/) {}

  /// Asked before each averaged step, with the same answer on every rank: true lets the step run as
  /// without a hook, with the same bits and at the same cost. Whenever the answer changes, buckets
  /// are formed anew.
  virtual bool is_noop() const { return false; }
  /// At the end of each averaged step's backward(), which took so long on this rank. It may
  /// communicate.
  virtual void after_step(double /*backward_ms*/, ProcessGroup& /*group*/) {}

  /// What must be kept to go on from a checkpoint as if nothing had been between, with the same
  /// names, types and shapes on every rank; read before the next step. None for a hook without a
  /// memory; one that has it has load_state() too.
  virtual std::optional<HookState> state() const { return std::nullopt; }
  /// Before the first start(): go on from what state() gave on this rank, with the same buckets.
  /// Errors: kCorrupt; it may also come from start().
  virtual void load_state(const HookState& state);
};

/// "none", "auto", "fp16", "bf16", "int8", "powersgd": what make_comm_hook() knows.
const std::vector<std::string>& comm_hook_names();

/// A fresh hook:
///   none  null: the plain average;
///   auto  none or bf16, as a trial of 17 steps finds faster;
///   fp16  gradients travel as float16, divided by the number of ranks before they are rounded, so
///         that sums do not overflow; half the bytes of float32;
///   bf16  the same in bfloat16: less exact, but no gradient is too large or too small for it;
///   int8  numbers of 8 bits with a scale for 256, rounding errors carried over;
///   powersgd  matrices as products of thin ones, after 1000 exact steps.
/// float16 and bfloat16 are added in float32 and rounded once per addition; results are equal on
/// all ranks. Gradients of other types than float32 and float64 travel as they are.
/// Errors: kInvalidArgument for another name, with the nearest known one.
std::shared_ptr<CommHook> make_comm_hook(const std::string& name);

}  // namespace lockstep
