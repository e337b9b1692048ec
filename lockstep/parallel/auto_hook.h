#pragma once
// Averages rounded gradients if that is faster here, exact ones if it is not.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm_hook.h"

namespace lockstep::inline internal {

/// The trial of AutoHook's first steps, and its result. Pure.
///
/// A trial alternates between both ways, first without a hook. The first step of a turn is not
/// counted, because it uses fresh memory. The very first step is not counted either: buckets are
/// formed anew after it.
class HookTrial {
 public:
  static constexpr int kTurns = 4;         ///< Two of each way.
  static constexpr int kCountedSteps = 3;  ///< Per turn.
  static constexpr int kSteps = 1 + kTurns * (1 + kCountedSteps);

  bool over() const { return step_ >= kSteps; }
  /// True if the next step uses rounded gradients.
  bool rounded() const { return turn() % 2 == 1; }
  /// Records the time that the averaging of the last step took.
  void record(double milliseconds);

  /// Medians of the counted steps: {none, rounded}.
  std::vector<double> medians() const;

 private:
  int turn() const { return step_ == 0 ? 0 : (step_ - 1) / (1 + kCountedSteps); }

  int step_ = 0;
  std::vector<double> counted_[2];  ///< {without a hook, with rounded gradients}.
};

/// The hook "auto" of make_comm_hook(): takes "bf16" if steps are faster with it than with "none".
///
/// It chooses between these two only: bfloat16 is close to the plain average and keeps no state.
/// Hooks that change how training converges (int8, powersgd) must be requested by name, and so must
/// float16, in which gradients can overflow.
///
/// In its first HookTrial::kSteps averaged steps (17) it times backward() both ways. It then takes
/// bf16 if that needs at most 95 % of the time on the slowest rank (see fastest()). So only these
/// steps can be slower than none. All ranks take the same; rank 0 logs the choice and the figures
/// in one line. If the choice is none, later steps are those without a hook.
///
/// Bits: up to the choice, and after it if it is none, those without a hook. In a step that tries
/// bfloat16, the gradients are averaged a second time, exactly, from a copy. After the choice of
/// bf16 they are those of bf16. So runs can differ, because measurements may lead to another
/// choice. A run resumed from a checkpoint keeps its choice (with as many ranks). Cost: in 8 of the
/// first steps a second average, and the memory of one more copy of the gradients.
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
  /// The part of backward()'s time that counts: without the second average. For tests, too.
  virtual double time_that_counts(double backward_ms) const { return backward_ms - second_ms_; }

 private:
  struct Copy {
    at::Tensor flat, gradients;
  };
  void choose(ProcessGroup& group);
  void average_copies(ProcessGroup& group);

  std::shared_ptr<CommHook> rounded_;
  Choice choice_ = Choice::kOpen;
  bool loaded_ = false;  ///< The choice is from a checkpoint, and has not been logged.
  HookTrial trial_;
  std::vector<Copy> copies_;  ///< By bucket, in a trial step.
  double second_ms_ = 0;      ///< The time of the second average in the present step.
};

}  // namespace lockstep::inline internal
