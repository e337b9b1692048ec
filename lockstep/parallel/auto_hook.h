#pragma once
// Rounded gradients where that is faster here, exact ones where it is not.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm_hook.h"

namespace lockstep {

/// What AutoHook tries in its first steps, and what it found. Pure.
///
/// A trial goes both ways in turns, first without a hook; the first step of a turn is not counted,
/// because it meets fresh memory, nor is the very first, after which buckets are formed anew.
class HookTrial {
 public:
  static constexpr int kTurns = 4;         ///< Two each way.
  static constexpr int kCountedSteps = 3;  ///< Of a turn.
  static constexpr int kSteps = 1 + kTurns * (1 + kCountedSteps);

  bool over() const { return step_ >= kSteps; }
  /// Whether the next step goes with rounded gradients.
  bool rounded() const { return turn() % 2 == 1; }
  /// The step has been made, and averaging it took so long.
  void record(double milliseconds);

  /// Medians of what was counted: {none, rounded}.
  std::vector<double> medians() const;

 private:
  int turn() const { return step_ == 0 ? 0 : (step_ - 1) / (1 + kCountedSteps); }

  int step_ = 0;
  std::vector<double> counted_[2];  ///< Without a hook, with rounded gradients.
};

/// The hook "auto" of make_comm_hook(): takes "bf16" where it makes steps faster than "none" does.
///
/// It chooses between these two only: bfloat16 is near the plain average and remembers nothing;
/// what changes how training converges (int8, powersgd) must be asked for by name, and so must
/// float16, in which gradients can overflow.
///
/// In its first HookTrial::kSteps averaged steps (17) it times backward() both ways and then takes
/// bf16 if that needs at most 95 % of the time on the rank that is slowest (see fastest()), so it
/// is not slower than none but for these steps. All ranks take the same; rank 0 logs the choice
/// and the figures in one line. If it is none, steps from then on are those without a hook.
///
/// Bits: up to the choice, and after it if that is none, those without a hook: in a step that is
/// tried in bfloat16 the gradients are averaged a second time, exactly, from a copy. After bf16 was
/// chosen they are those of bf16. So runs can differ, as one that measures may choose otherwise;
/// a run that goes on from a checkpoint keeps its choice (with as many ranks).
/// Cost: in 8 of the first steps a second average, and the memory of one more copy of the
/// gradients.
class AutoHook : public CommHook {
 public:
  AutoHook();
  std::string describe() const override { return "auto"; }
  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override;
  bool is_noop() const override;
  void after_step(double backward_ms, ProcessGroup& group) override;
  void buckets_changed(int first) override;
  std::optional<HookState> state() const override;
  void load_state(const HookState& state) override;

  enum class Choice { kOpen, kNone, kBf16 };
  Choice choice() const { return choice_; }

 protected:
  /// Of what backward() took, the part that counts: not what averaging again took. For tests, too.
  virtual double time_that_counts(double backward_ms) const { return backward_ms - second_ms_; }

 private:
  struct Copy {
    at::Tensor flat, gradients;
  };
  void choose(ProcessGroup& group);
  void average_copies(ProcessGroup& group);

  std::shared_ptr<CommHook> rounded_;
  Choice choice_ = Choice::kOpen;
  bool loaded_ = false;  ///< The choice is from a checkpoint, and nobody has been told so.
  HookTrial trial_;
  std::vector<Copy> copies_;  ///< By bucket, in a step that is tried.
  double second_ms_ = 0;      ///< Of the step under way: what averaging again took.
};

}  // namespace lockstep
