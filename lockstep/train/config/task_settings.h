#pragma once
// The values of `model.type`, each as one object: how the sections are read that are not the same
// for all tasks. What is made of them needs libtorch: see lockstep/train/task_parts.h. These
// two tables alone are selected by the type. A registered task is one more: see registered_task.h.

#include <span>
#include <string>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

enum class DataUse : uint8_t;
struct TaskSettings;

LossConfig read_loss(ConfigSection& section, const TaskSettings& task);  // see sections.h

/// A part of a task, as --list shows it. Its settings are those that the task's readers ask for.
struct BuiltInPart {
  std::string name;
  std::string about;  ///< One line.
};
using BuiltInParts = std::vector<BuiltInPart>;

struct BuiltInLoss {
  std::string name;
  std::string about;  ///< One line.
  LossConfig (*read)(ConfigSection& section);
  const char* alone = nullptr;  ///< Why no other part can have it as a part; null: it can.
};

struct BuiltInMetric {
  std::string name;
  std::string about;  ///< One line.
  /// Its own settings; null: it has none.
  void (*read)(ConfigSection& section, MetricConfig& config) = nullptr;
  const char* alone = nullptr;  ///< As BuiltInLoss::alone.
};

/// Its readers leave Section::finish() of the section that they are given to the caller.
struct TaskSettings {
  const char* name;   ///< As `model.type` has it.
  const char* about;  ///< One line, for --list.
  // The first loss and metric are the default.
  BuiltInParts backbones;
  std::vector<BuiltInLoss> losses;
  const char* about_losses = "";  ///< For the manual's line about loss.name.
  std::vector<BuiltInMetric> metrics;
  BuiltInParts datasets;
  const char* default_dataset = "";  ///< Empty: dataset.type is required.
  // Columns of batches, which a text data set must have.
  std::vector<std::string> loss_columns{};
  std::vector<std::string> metric_columns{};
  std::vector<std::string> evaluation_columns{};  ///< Beside those.
  size_t feature_maps = 0;              ///< Of a backbone, for the neck; 0: it takes the last.
  bool exact_decay = false;             ///< Default of OptimizerConfig::exact_decay.
  const char* weights_format = "ckpt";  ///< Default of TrainSection::weights_format.
  BackboneConfig (*read_backbone)(ConfigSection& section);
  /// All but the keys `name`, which `config` has, and `pretrained`.
  void (*read_backbone_keys)(ConfigSection& section, BackboneConfig& config);
  void (*read_neck_and_head)(ConfigSection& model, ModelConfig& config);
  /// Beside model.network: the number of its classes alone.
  void (*read_head_of_network)(ConfigSection& model, ModelConfig& config);
  LossConfig (*read_loss)(ConfigSection& section, const TaskSettings& task) = lockstep::read_loss;
  MetricConfig (*read_metric)(ConfigSection& section, const TaskSettings& task);
  PostprocessConfig (*read_postprocess)(ConfigSection& section);
  /// All but the keys `type` and `dataset_root`.
  void (*read_dataset)(ConfigSection& section, DatasetConfig& config, const TaskSettings& task,
                       DataUse use);
  /// Defaults and checks across sections.
  void (*complete)(Config& config, ConfigSection& root);
  const Recipe* recipe = nullptr;  ///< Of a registered task.
  /// Of `cls`, once train.dataset is read: pictures to predict become small images.
  bool small_images = false;
};

TaskSettings class_task();
TaskSettings detection_task();
TaskSettings recognition_task();

/// In the order of ModelType.
std::span<const TaskSettings> all_tasks();
const TaskSettings& task_settings(ModelType type);
/// `config.task`, or the built-in one.
TaskSettings task_settings(const ModelConfig& config);

}  // namespace lockstep::inline internal
