#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "lockstep/observe/metrics.h"
#include "lockstep/observe/result_log.h"
#include "lockstep/train/trainer.h"
#include "lockstep/writer_fence.h"

namespace lockstep {

/// On rank 0: metrics.jsonl (each optimizer step and evaluation) and result.log (each epoch, and
/// the part of one in which a run ended), in train.ckpt_save_dir. A resumed run goes on in the
/// files it finds. A row stands there before its epoch is saved and evaluated; the figures come
/// into it when they are known. What cannot be written costs a warning, once, and never the run.
/// Add it before Checkpoints: a checkpoint's steps are in the results by then.
class Results final : public Callback {
 public:
  /// With labels each record of metrics.jsonl says when it was written, and by which run. `fence`:
  /// of this run's writer. A file is not replaced once a newer generation writes; errors of what
  /// replaces one: kMismatch.
  explicit Results(std::optional<MetricsLabels> labels = std::nullopt,
                   const WriterFence& fence = {})
      : labels_(std::move(labels)), fence_(fence) {}

  void on_start(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_end(Trainer& trainer) override;
  /// After on_start: the steps behind the checkpoint that the run goes on from.
  const MetricsWriter::Lost& lost() const { return lost_; }

 private:
  void write(const MetricsRecord& record);
  void write_row(Trainer& trainer, ResultRow row);
  void keep(const std::function<void()>& writing);

  std::optional<MetricsLabels> labels_;
  WriterFence fence_;
  MetricsWriter::Lost lost_;
  std::optional<MetricsWriter> metrics_;
  std::optional<ResultLog> result_log_;
  bool warned_ = false;
  bool has_part_ = false;  // steps came since an epoch's end
};

/// To that many places after the point.
double rounded(double value, int places);

}  // namespace lockstep
