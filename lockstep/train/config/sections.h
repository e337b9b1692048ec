#pragma once
// One reader a section of the file. Private to this folder.

#include "lockstep/train/config/config.h"
#include "lockstep/train/config/section.h"

namespace lockstep {

/// Bound of numbers that only have to be sensible: steps, epochs.
inline constexpr int64_t kMaxCount = int64_t{1} << 40;

SystemConfig read_system(Section section);
ModelConfig read_model(Section section);
MetricConfig read_metric(Section section);
LossConfig read_loss(Section section);
SchedulerConfig read_scheduler(Section section);
OptimizerConfig read_optimizer(Section section);
TrainSection read_train(Section section);
EvalSection read_eval(Section section);
ParallelConfig read_parallel(Section section);
void check_postprocess(Section section);
LossScalerConfig read_loss_scaler(Section section);

/// Of `train` (training: true) and `eval`.
DatasetConfig read_dataset(Section section, bool training);
LoaderConfig read_loader(Section section, bool training);
/// A key of MindOCR without effect here: it may hold anything.
void ignore(Section& section, const std::string& key);

}  // namespace lockstep
