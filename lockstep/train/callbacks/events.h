#pragma once

#include <memory>
#include <string>

#include "lockstep/observe/metrics.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/trainer.h"

namespace lockstep {

/// On rank 0: events.jsonl in train.ckpt_save_dir, in the form of metrics.jsonl. Kinds: start,
/// restart (with the steps and seconds that are lost, and the seconds without training),
/// checkpoint, evaluation, end (with its reason: "membership" where nodes of an elastic job came or
/// went and the job goes on), failure. It is never cut: a later generation goes on in it. What
/// cannot be written is left out. Add it last, so that the end comes after the last checkpoint.
class Events final : public Callback {
 public:
  /// `results`: added before; they know what a restart has lost. `again`: this job was started
  /// before, though it may begin anew, as one does that had no checkpoint yet.
  Events(MetricsLabels labels, std::shared_ptr<const Results> results, bool again)
      : labels_(std::move(labels)), results_(std::move(results)), again_(again) {}

  void on_start(Trainer& trainer) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_saved(Trainer& trainer, const SavedCheckpoint& saved) override;
  void on_close(Trainer& trainer) override;
  /// The run ends by this error.
  void failed(Trainer& trainer, const std::string& what);

 private:
  void write(const MetricsRecord& record);

  MetricsLabels labels_;
  std::shared_ptr<const Results> results_;
  bool again_;
  std::optional<MetricsWriter> writer_;
};

}  // namespace lockstep
