#pragma once

#include <exception>
#include <string>
#include <utility>

#include "lockstep/base/log.h"
#include "lockstep/train.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {

/// Calls the functions of a recipe, or of a registered callback.
class EventCallback final : public Callback {
 public:
  explicit EventCallback(RecipeEvents events) : events_(std::move(events)) {}

  void on_begin(Trainer& trainer) override {
    tell(events_.on_begin,
         RunFacts{trainer.rank(), trainer.num_ranks(), trainer.state().step, trainer.total_steps(),
                  trainer.config().train.ckpt_save_dir.string()});
  }
  void on_epoch_begin(Trainer&, int64_t epoch) override { tell(events_.on_epoch_begin, epoch); }
  void before_step(Trainer& trainer, const StepReport& next) override {
    tell(events_.before_step, trainer.model(), facts_of(next));
  }
  void before_update(Trainer& trainer) override { tell(events_.before_update, trainer.model()); }
  void on_step(Trainer&, const StepReport& report) override {
    tell(events_.on_step, facts_of(report));
  }
  void on_epoch(Trainer&, const EpochReport& report) override {
    tell(events_.on_epoch, report.epoch, report.loss);
  }
  void before_evaluation(Trainer& trainer) override {
    tell(events_.before_evaluation, trainer.model());
  }
  void on_evaluation(Trainer&, const EvalResult& result) override {
    tell(events_.on_evaluation, result);
  }
  void on_saved(Trainer&, const SavedCheckpoint& saved) override {
    tell(events_.on_saved, CheckpointFacts{saved.epoch, saved.step, saved.path, saved.best});
  }
  /// At the close: the end of a run may evaluate once more, and on_end is the last event. An error
  /// of it comes before the end is announced.
  void on_close(Trainer&) override { tell(events_.on_end); }
  /// An error of on_error itself is a warning: the run's is that which came first.
  void failed(const std::string& why) {
    try {
      tell(events_.on_error, why);
    } catch (const std::exception& error) {
      log_warn(std::string("on_error failed too: ") + error.what());
    } catch (...) {
      log_warn("on_error failed too");
    }
  }

 private:
  static StepFacts facts_of(const StepReport& report) {
    return {report.epoch,           report.step_in_epoch, report.steps_per_epoch,
            report.optimizer_steps, report.loss,          report.lr,
            report.logged};
  }
  template <typename Event, typename... Facts>
  static void tell(const Event& event, Facts&&... facts) {
    if (event) event(std::forward<Facts>(facts)...);
  }

  RecipeEvents events_;
};

}  // namespace lockstep::inline internal
