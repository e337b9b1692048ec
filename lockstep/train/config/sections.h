#pragma once
// One reader per section of the file. Private to this folder.

#include <functional>

#include "lockstep/train/config/config.h"
#include "lockstep/train/config/config_section.h"
#include "lockstep/train/config/own_parts.h"

namespace lockstep::inline internal {

struct TaskSettings;
struct WrappedDataset;  // built_in_makers.h

/// Bound of numbers that only need to be plausible: steps, epochs.
inline constexpr int64_t kMaxCount = int64_t{1} << 40;
inline constexpr int64_t kMaxSide = 1 << 16;  ///< Pixels.

/// The purpose of a data set. kEither: training and evaluation, by one maker.
enum class DataUse : uint8_t { kTrain, kEval, kPredict, kEither };

/// The images of a classifier: in files, or in memory and perhaps grey.
enum class ImageKind : uint8_t { kInFiles, kSmall };

bool contains(const std::vector<std::string>& list, const std::string& text);

SystemConfig read_system(ConfigSection section);
ModelConfig read_model(ConfigSection section);
SchedulerConfig read_scheduler(ConfigSection section);
/// `of`: in front of the lines of the manual.
void read_patience(ConfigSection& section, PatienceConfig& config, const std::string& of);
/// `exact_decay`: the default. `peak`: scheduler.lr, for groups with a rate of their own.
OptimizerConfig read_optimizer(ConfigSection section, bool exact_decay, double peak);
/// The same for an optimizer that the section does not name: the groups alone.
OptimizerConfig read_groups_alone(ConfigSection section, double peak);
TrainSection read_train(ConfigSection section, const TaskSettings& task);
EvalSection read_eval(ConfigSection section, const TaskSettings& task);
PredictSection read_predict(ConfigSection section, const TaskSettings& task);
ParallelConfig read_parallel(ConfigSection section);
LossScalerConfig read_loss_scaler(ConfigSection section);

/// For --list. Backbones, losses, metrics and data sets: of all tasks.
std::vector<ListedPart> built_in_tasks();
std::vector<ListedPart> built_in_backbones();
std::vector<ListedPart> built_in_losses();
std::vector<ListedPart> built_in_metrics();
std::vector<ListedPart> built_in_datasets();
std::vector<ListedPart> built_in_optimizers();
std::vector<ListedPart> built_in_schedules();
std::vector<ListedPart> built_in_class_transforms();

/// Weights: a file, an address, none, or True: MindOCR's address, which is `known`. `by_default`:
/// an absent key means True.
void read_weights(ConfigSection& section, std::string& weights, const std::string& known,
                  bool by_default, const std::string& about);
/// One of task.losses, the first by default, or a registered one.
LossConfig read_loss(ConfigSection& section, const TaskSettings& task);
MetricConfig read_class_metric(ConfigSection& section, const TaskSettings& task);
/// The settings of TopKMetric.
void read_top_k(ConfigSection& section, MetricConfig& config);
/// The settings of F1Metric.
void read_averages(ConfigSection& section, MetricConfig& config);
/// The settings of those of task.metrics that are among config.names.
void read_built_in_metrics(ConfigSection& section, const TaskSettings& task, MetricConfig& config);
/// `name` of `metric`: one of `known`, or a list of some.
std::vector<std::string> read_metric_names(ConfigSection& section,
                                           const std::vector<std::string>& known,
                                           const std::string& about);

/// The settings of the registered ones among config.names, then main_indicator, by default the
/// first figure. The names of figures of registered metrics, and of single classes, are known once
/// the metrics are made, so the trainer checks those.
void read_own_metrics(ConfigSection& section, MetricConfig& config);

DatasetConfig read_dataset(ConfigSection section, const TaskSettings& task, DataUse use);
/// The data set `type` for one of a program's own that takes its batches. The place of `section`
/// tells what it is for: train.dataset, eval.dataset, or both. Errors: kInvalidArgument, also for
/// what the trainer does for a data set that it makes itself.
WrappedDataset read_wrapped_dataset(ConfigSection& section, const std::string& type,
                                    const TaskSettings& task);
void read_class_dataset(ConfigSection& section, DatasetConfig& config, const TaskSettings& task,
                        DataUse use);
void read_ocr_dataset(ConfigSection& section, DatasetConfig& config, const TaskSettings& task,
                      DataUse use);
LoaderConfig read_loader(ConfigSection section, DataUse use);
/// Calls `read` for each item `name: {settings}` of transform_pipeline, if that is given.
using TransformReader = std::function<void(ConfigSection& item, const std::string& name)>;
void read_transforms(ConfigSection& section, const TransformReader& read);
/// The transform_pipeline of a classifier's data set. Random transforms are for training alone.
void read_class_pipeline(ConfigSection& section, DatasetConfig& config, bool training,
                         ImageKind images);
/// The names of the built-in transforms of text.
const std::vector<std::string>& text_transform_names();
/// The registered transform of an item of a pipeline, with its settings read; none if none has this
/// name. `built_in`: the names of this kind of pipeline. Errors: no transform has it, or several
/// have; a registered one with the name of a built-in one of any kind.
std::optional<OwnTransform> read_own_transform(ConfigSection& item, const std::string& name,
                                               const std::vector<std::string>& built_in);
/// The transform_pipeline of a text data set.
std::vector<ocr::Transform> read_ocr_pipeline(ConfigSection& section, DataUse use);
/// Checks output_columns and the lists of indices into them, against the inputs of loss or metric
/// and the outputs of the pipeline.
void check_columns(ConfigSection& section, const DatasetConfig& config, const TaskSettings& task,
                   DataUse use);
/// Checks that a recogniser's sections agree on dictionary, classes and lengths of words.
void check_recogniser(Config& config, ConfigSection& root);
/// Reads the dictionary and checks that model.head has a class for each of its characters.
void check_head_classes(const Config& config, const ocr::CharacterOptions& taught,
                        ConfigSection& root);
/// The common keys of all readers of dictionaries; not every reader has `lower`.
ocr::CharacterOptions read_characters(ConfigSection& section);

/// A key that `read` leaves is an error.
template <typename T>
T read_all_of(ConfigSection section, T (*read)(ConfigSection&)) {
  T config = read(section);
  section.finish();
  return config;
}
template <typename T>
T read_all_of(ConfigSection section, T (*read)(ConfigSection&, const TaskSettings&),
              const TaskSettings& task) {
  T config = read(section, task);
  section.finish();
  return config;
}

/// A key of MindOCR without effect here; any value is accepted.
void ignore(ConfigSection& section, const std::string& key);
/// A key of MindOCR with one allowed name.
void accept(ConfigSection& section, const std::string& key, const std::string& only);

}  // namespace lockstep::inline internal
