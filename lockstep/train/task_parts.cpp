#include "lockstep/train/task_parts.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/error.h"
#include "lockstep/model.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/ocr_data.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/class_losses.h"
#include "lockstep/train/task/class_scores.h"
#include "lockstep/train/task/classification.h"
#include "lockstep/train/task/losses_and_metrics.h"
#include "lockstep/train/task/ocr_tasks.h"
#include "lockstep/train/task/task.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

/// A registered loss. libtorch's own message about such a result does not say whose it is.
LossFunction checked(const OwnLoss& own) {
  return [own](const Tensors& outputs, const Tensors& targets) {
    auto loss = own.make.function(outputs, targets);
    if (loss.defined() && loss.numel() == 1) return loss;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("loss: '{}' gave {}, not one number", own.name,
                            loss.defined() ? fmt::format("{} numbers", loss.numel()) : "nothing"));
  };
}

/// Registered or built in. The trainer takes the former's log_names out of the configuration.
LoggedLoss make_loss(const LossConfig& config) {
  const auto* own = std::get_if<OwnLoss>(&config);
  return own != nullptr ? LoggedLoss(checked(*own)) : make_built_in_loss(config);
}

/// A misspelt name would leave a figure's direction as it is.
void check_lower_is_better(const std::string& metric, const std::vector<std::string>& lower,
                           const std::vector<std::string>& figures) {
  for (const auto& name : lower) {
    if (std::find(figures.begin(), figures.end(), name) != figures.end()) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("metric: lower_is_better() of '{}' has '{}', and metric_names() has {}{}",
                    metric, name, fmt::join(figures, ", "), did_you_mean(name, figures)));
  }
}

std::unique_ptr<Metric> make_own_metric(const OwnMetric& own, int64_t classes) {
  auto metric = own.make(classes);
  if (!metric) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("metric: '{}' made no metric", own.name));
  }
  check_lower_is_better(own.name, metric->lower_is_better(), metric->metric_names());
  return metric;
}

/// Files and logs have one place for each figure.
void check_distinct(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.name: two metrics have a figure '{}'", *twice));
}

/// Those of config.names. `scores`: see make_built_in_metric().
MetricList make_metrics(const MetricConfig& config, int64_t classes,
                        const std::shared_ptr<const ClassScores>& scores = nullptr) {
  MetricList metrics;
  for (const auto& name : config.names) {
    const auto* own = find_named(config.own, name);
    metrics.push_back(own != nullptr ? make_own_metric(*own, classes)
                                     : make_built_in_metric(config, name, classes, scores));
  }
  check_distinct(figure_names(metrics));
  return metrics;
}

std::unique_ptr<Task> make_detection(const Config& config, bool) {
  return std::make_unique<DetectionTask>(make_loss(config.loss),
                                         std::get<ocr::DbPostprocessOptions>(config.postprocess),
                                         make_metrics(config.metric, config.model.num_classes()));
}

std::unique_ptr<Task> make_recognition(const Config& config, bool) {
  return std::make_unique<RecognitionTask>(make_loss(config.loss),
                                           std::get<ocr::CharacterOptions>(config.postprocess),
                                           make_metrics(config.metric, config.model.num_classes()));
}

/// Its statistics decide about its outputs, too. Counts of batches do not, and some formats lack
/// them.
uint64_t digest_with_buffers(const torch::nn::Module& module) {
  Hash hash;
  for (const auto& [name, tensor] : module_tensors(module)) {
    if (name.ends_with("num_batches_tracked")) continue;
    const auto values = tensor.detach().contiguous();
    hash.update(name.data(), name.size());
    hash.update(values.data_ptr(), values.nbytes());
  }
  return first_64_bits(hash.hex());
}

/// A trained network whose outputs another one learns. It only computes: in evaluation mode, in
/// float32, without gradients. It is no part of the network that trains, so neither data parallel
/// nor checkpoints see it. One thread.
class Teacher {
 public:
  /// `config`: with its weights as `pretrained`, a file or a checkpoint. Errors: those of
  /// make_model() and load_weights(); kNotFound if the weights are not there.
  explicit Teacher(const ModelConfig& config);

  /// The first eight bytes of the SHA-256 over names and values of its parameters and buffers.
  /// Cost: about 1 ms per MB, once.
  uint64_t digest() const { return digest_; }

  /// Its first output for a batch's inputs, on their device; it moves there with the first batch.
  at::Tensor operator()(const Tensors& inputs);

 private:
  std::shared_ptr<Model> model_;
  uint64_t digest_ = 0;
};

Teacher::Teacher(const ModelConfig& config) : model_(make_model(without_pretrained(config), 0)) {
  load_weights(weights_in(require_weights(config.pretrained), /*averaged=*/true), *model_);
  model_->eval();
  for (auto& parameter : model_->parameters()) parameter.set_requires_grad(false);
  digest_ = digest_with_buffers(*model_);
}

at::Tensor Teacher::operator()(const Tensors& inputs) {
  const at::NoGradGuard no_grad;
  const at::Device device = inputs.front().device();
  if (model_->device() != device) model_->to(device);
  return model_->compute(inputs).front();
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
  parts.loss = make_loss(config.loss).function;
  const auto* distillation = std::get_if<DistillationConfig>(&config.loss);
  if (distillation != nullptr && trains) add_teacher(*distillation, parts);
  const auto has = [&](const char* name) {
    return std::find(metric.names.begin(), metric.names.end(), name) != metric.names.end();
  };
  if (has("AucMetric") || has("MapMetric")) {
    const bool by_itself = std::holds_alternative<BceConfig>(config.loss);
    parts.scores = std::make_shared<ClassScores>(classes, by_itself);
  }
  parts.metrics = make_metrics(metric, classes, parts.scores);
  // Outputs and targets of metrics of one's own may be anything.
  const bool all_own = metric.own.size() == metric.names.size();
  parts.evaluates_loss = !all_own;
  if (!all_own && classes <= kMostConfused) parts.confused_classes = classes;
  return std::make_unique<ClassificationTask>(std::move(parts));
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
  return {
      .make = make,
      .make_batches =
          [](const Config& config, bool training, PixelForm form, DataParts& data) {
            return make_ocr_batches(config, training, form, kColumns, data);
          },
      .check_data = [](const Config& config) { return check_ocr_data(config, kColumns, kPlanes); },
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

std::unique_ptr<Task> make_task(const Config& config, bool trains) {
  return task_parts(config).make(config, trains);
}

}  // namespace lockstep::inline internal
