#pragma once
// One reader a section of the file. Private to this folder.

#include "lockstep/train/config/config.h"
#include "lockstep/train/config/section.h"

namespace lockstep {

/// Bound of numbers that only have to be sensible: steps, epochs.
inline constexpr int64_t kMaxCount = int64_t{1} << 40;
inline constexpr int64_t kMaxSide = 1 << 16;  ///< Pixels.

/// What a data set is for.
enum class DataUse : uint8_t { kTrain, kEval, kPredict };

SystemConfig read_system(Section section);
ModelConfig read_model(Section section);
MetricConfig read_metric(Section section, ModelType type);
LossConfig read_loss(Section section, ModelType type);
PostprocessConfig read_postprocess(Section section, ModelType type);
SchedulerConfig read_scheduler(Section section);
OptimizerConfig read_optimizer(Section section, ModelType type);
TrainSection read_train(Section section, ModelType type);
EvalSection read_eval(Section section, ModelType type);
PredictSection read_predict(Section section, ModelType type);
ParallelConfig read_parallel(Section section);
LossScalerConfig read_loss_scaler(Section section);

DatasetConfig read_dataset(Section section, ModelType type, DataUse use);
LoaderConfig read_loader(Section section, DataUse use);
/// transform_pipeline of a data set of text.
std::vector<ocr::Transform> read_text_pipeline(Section& section, DataUse use);
/// output_columns and the lists of indices into them, against what loss or metric take and what the
/// pipeline makes.
void check_columns(Section& section, const DatasetConfig& config, ModelType type, DataUse use);
/// What a recogniser's sections must agree on: dictionary, classes, lengths of words.
void check_recogniser(const Config& config, Section& root);
/// Whether model.head tells apart what the dictionary has, which is read for that.
void check_head_classes(const Config& config, const ocr::CharacterOptions& taught, Section& root);
/// What the readers of dictionaries have in common; `lower` is not everybody's.
ocr::CharacterOptions read_characters(Section& section);

/// A key of MindOCR without effect here: it may hold anything.
void ignore(Section& section, const std::string& key);
/// A key of MindOCR that can hold one name alone.
void accept(Section& section, const std::string& key, const std::string& only);
/// A name out of `built_in`; `others` are MindOCR's too, and the error says that they are not built
/// in. Empty `value`: it must be given.
void read_name(Section& section, const std::string& key, std::string& value,
               const std::vector<std::string>& built_in, const std::vector<std::string>& others,
               const std::string& about);

}  // namespace lockstep
