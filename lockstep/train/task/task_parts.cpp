#include "lockstep/train/task/task_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/error.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/log/lines.h"
#include "lockstep/train/ocr_data.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/task/class_losses.h"
#include "lockstep/train/task/class_metrics.h"
#include "lockstep/train/task/class_scores.h"
#include "lockstep/train/task/classification.h"
#include "lockstep/train/task/detection.h"
#include "lockstep/train/task/recognition.h"
#include "lockstep/train/task/teacher.h"

namespace lockstep {
namespace {

std::unique_ptr<Task> make_detection(const Config& config, bool) {
  return std::make_unique<DetectionTask>(make_db_loss(std::get<DbLossConfig>(config.loss)),
                                         std::get<ocr::DbPostprocessOptions>(config.postprocess),
                                         config.metric.det);
}

std::unique_ptr<Task> make_recognition(const Config& config, bool) {
  return std::make_unique<RecognitionTask>(make_ctc_loss(std::get<CtcLossConfig>(config.loss)),
                                           std::get<ocr::CharacterOptions>(config.postprocess),
                                           config.metric.rec);
}

/// A registered loss. libtorch's own message about such a result does not say whose it is.
LossFunction checked(const OwnLoss& own) {
  return [own](const Tensors& outputs, const Tensors& targets) {
    auto loss = own.make(outputs, targets);
    if (loss.defined() && loss.numel() == 1) return loss;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("loss: '{}' gave {}, not one number", own.name,
                            loss.defined() ? fmt::format("{} numbers", loss.numel()) : "nothing"));
  };
}

std::unique_ptr<Metric> make_own_metric(const OwnMetric& own, int64_t classes) {
  auto metric = own.make(classes);
  if (metric) return metric;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("metric: '{}' made no metric", own.name));
}

std::unique_ptr<Metric> make_class_metric(const MetricConfig& config, const std::string& name,
                                          int64_t classes,
                                          const std::shared_ptr<const ClassScores>& scores) {
  for (const auto& own : config.own) {
    if (own.name == name) return make_own_metric(own, classes);
  }
  if (name == "TopKMetric") return top_k_metric(config.top_ks(classes));
  if (name == "F1Metric") return f1_metric(classes, config.averages);
  if (name == "AucMetric") return auc_metric(scores);
  if (name == "MapMetric") return map_metric(scores);
  return accuracy_metric(classes);
}

/// Files and logs have one place for each figure.
void check_distinct(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.name: two metrics have a figure '{}'", *twice));
}

/// The loss with the teacher's part.
void add_teacher(const DistillationConfig& config, ClassificationParts& parts) {
  const auto teacher = std::make_shared<Teacher>(config.teacher);
  parts.teacher_digest = teacher->digest();
  parts.batch_loss = [config, teacher](const Batch& batch, const Tensors& outputs) {
    return distillation_loss(outputs.front(), batch.targets.front(), (*teacher)(batch.inputs()),
                             config);
  };
}

std::unique_ptr<Task> make_classification(const Config& config, bool trains) {
  constexpr int64_t kMostConfused = 1000;  // classes: a table of a million counts
  const int64_t classes = config.model.head.num_classes;
  const auto& metric = config.metric;
  ClassificationParts parts;
  const auto* own = std::get_if<OwnLoss>(&config.loss);
  parts.loss = own ? checked(*own) : class_loss(config.loss);
  const auto* distillation = std::get_if<DistillationConfig>(&config.loss);
  if (distillation != nullptr && trains) add_teacher(*distillation, parts);
  const auto has = [&](const char* name) {
    return std::find(metric.names.begin(), metric.names.end(), name) != metric.names.end();
  };
  if (has("AucMetric") || has("MapMetric")) {
    const bool by_itself = std::holds_alternative<BceConfig>(config.loss);
    parts.scores = std::make_shared<ClassScores>(classes, by_itself);
  }
  for (const auto& name : metric.names) {
    parts.metrics.push_back(make_class_metric(metric, name, classes, parts.scores));
  }
  // Outputs and targets of metrics of one's own may be anything.
  const bool all_own = metric.own.size() == metric.names.size();
  parts.evaluates_loss = !all_own;
  if (!all_own && classes <= kMostConfused) parts.confused_classes = classes;
  auto task = std::make_unique<ClassificationTask>(std::move(parts));
  check_distinct(task->metric_names());
  return task;
}

/// A classifier's data have one folder.
std::string class_root(const Config& config) {
  const auto& dataset = config.train.dataset;
  if (dataset.type == "WebDataset") return dataset.label_files[0].string();
  return dataset.data_dirs.empty() ? "" : dataset.data_dirs[0].string();
}

std::string detection_lines(const Config& config) {
  const auto& steps = config.eval->dataset.pipeline;
  const bool resizes = std::any_of(steps.begin(), steps.end(), [](const ocr::Transform& step) {
    return std::holds_alternative<ocr::DetResize>(step);
  });
  return fmt::format("Allow rescaling polygons for Det postprocess: {}\n", python_bool(resizes));
}

std::string recognition_lines(const Config& config) {
  const auto& characters = std::get<ocr::CharacterOptions>(config.postprocess);
  const auto& path = characters.character_dict_path;
  return fmt::format("Character dict path: {}\nUse space char: {}\nNum classes: {}\n",
                     path.empty() ? "None" : path, python_bool(characters.use_space_char),
                     config.model.head.out_channels);
}

/// `kPlanes`: numbers for each pixel of a sample in training.
template <OcrColumns kColumns, int64_t kPlanes>
TaskParts ocr_parts(std::unique_ptr<Task> (*make)(const Config&, bool),
                    std::string (*evaluation_lines)(const Config&)) {
  return {.make = make,
          .make_batches =
              [](const Config& config, bool training, DataParts& data) {
                return make_ocr_batches(config, training, kColumns, data);
              },
          .check_data = [](const Config& config) { return check_ocr_data(config, kPlanes); },
          // They are missed when they are read.
          .missing_files = [](const Config&, bool) { return std::vector<std::string>(); },
          // MindOCR shows the root alone.
          .data_root = [](const Config& config) { return config.train.dataset.dataset_root; },
          .evaluation_lines = evaluation_lines};
}

}  // namespace

const TaskParts& task_parts(const Config& config) {
  static const std::array<TaskParts, 3> tasks = {
      {// In the order of ModelType.
       {.make = make_classification,
        .make_batches = make_class_batches,
        .check_data = check_class_data,
        .missing_files = missing_class_files,
        .data_root = class_root,
        .evaluation_lines = [](const Config&) { return std::string(); }},
       // A batch has four more maps: text and its mask, borders and their mask.
       ocr_parts<OcrColumns::kDetection, 3 + 4>(make_detection, detection_lines),
       ocr_parts<OcrColumns::kRecognition, 3>(make_recognition, recognition_lines)}};
  return tasks[static_cast<size_t>(config.model.type)];
}

}  // namespace lockstep
