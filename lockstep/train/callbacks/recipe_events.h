#pragma once

#include <string>
#include <utility>

#include "lockstep/train.h"
#include "lockstep/train/trainer.h"

namespace lockstep {

/// Calls the functions of a recipe, or of a registered callback.
class EventCallback final : public Callback {
 public:
  explicit EventCallback(RecipeEvents events) : events_(std::move(events)) {}

  void on_epoch_begin(Trainer&, int64_t epoch) override { tell(events_.on_epoch_begin, epoch); }
  void before_update(Trainer& trainer) override { tell(events_.before_update, trainer.model()); }
  void on_step(Trainer&, const StepReport& report) override {
    tell(events_.on_step, StepFacts{report.epoch, report.step_in_epoch, report.steps_per_epoch,
                                    report.optimizer_steps, report.loss, report.lr});
  }
  void on_epoch(Trainer&, const EpochReport& report) override {
    tell(events_.on_epoch, report.epoch, report.loss);
  }
  void on_evaluation(Trainer&, const EvalResult& result) override {
    tell(events_.on_evaluation, result);
  }
  void on_end(Trainer&) override { tell(events_.on_end); }
  void failed(const std::string& why) { tell(events_.on_error, why); }

 private:
  template <typename Event, typename... Facts>
  static void tell(const Event& event, Facts&&... facts) {
    if (event) event(std::forward<Facts>(facts)...);
  }

  RecipeEvents events_;
};

}  // namespace lockstep
