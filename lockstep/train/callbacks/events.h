#pragma once

#include <memory>
#include <string>

#include "lockstep/observe/metrics.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {

/// On rank 0: events.jsonl in train.ckpt_save_dir, in the form of metrics.jsonl. Kinds: start,
/// restart, checkpoint, evaluation, plateau, end (with its reason), failure. A restart records the
/// steps and seconds lost, and the seconds without training. The reason "membership" means that
/// hosts of an elastic job joined or left and the job continues. The file is never truncated: a
/// later generation appends to it. Write errors are ignored. Add it last, so that the end comes
/// after the last checkpoint.
class Events final : public Callback {
 public:
  /// `results`: added before; they hold the losses of a restart. `again`: this job was started
  /// before, even if it begins anew because it had no checkpoint yet.
  Events(MetricsLabels labels, std::shared_ptr<const Results> results, bool again)
      : labels_(std::move(labels)), results_(std::move(results)), again_(again) {}

  void on_start(Trainer& trainer) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_saved(Trainer& trainer, const SavedCheckpoint& saved) override;
  void on_close(Trainer& trainer) override;
  /// Records that this error ended the run.
  void failed(Trainer& trainer, const std::string& what);

 private:
  void write(const MetricsRecord& record);

  MetricsLabels labels_;
  std::shared_ptr<const Results> results_;
  bool again_;
  std::optional<MetricsWriter> writer_;
};

}  // namespace lockstep::inline internal
