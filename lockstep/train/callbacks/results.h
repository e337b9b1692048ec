#pragma once

#include <optional>

#include "lockstep/observe/metrics.h"
#include "lockstep/observe/result_log.h"
#include "lockstep/train/trainer.h"

namespace lockstep {

/// On rank 0: metrics.jsonl (each optimizer step and evaluation) and result.log (each epoch), in
/// train.ckpt_save_dir. A resumed run goes on in the files it finds.
class Results final : public Callback {
 public:
  void on_start(Trainer& trainer) override;
  void on_begin(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;

 private:
  void add_evaluation(Trainer& trainer, ResultRow& row);

  std::optional<MetricsWriter> metrics_;
  std::optional<ResultLog> result_log_;
  std::optional<EvalResult> evaluation_;  // of the epoch that is about to be written
};

}  // namespace lockstep
