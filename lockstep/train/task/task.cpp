#include "lockstep/train/task/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/task/class_losses.h"
#include "lockstep/train/task/class_metrics.h"
#include "lockstep/train/task/class_scores.h"
#include "lockstep/train/task/classification.h"
#include "lockstep/train/task/detection.h"
#include "lockstep/train/task/recognition.h"
#include "lockstep/train/task/teacher.h"

namespace lockstep {

void check_main_indicator(const std::string& name, std::span<const std::string> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.main_indicator is '{}', evaluation gives {}", name,
                          fmt::join(known, ", ")));
}

double EvalResult::metric(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [own, value] : metrics) {
    if (own == name) return value;
    known.push_back(own);
  }
  check_main_indicator(name, known);
  return 0;
}

void Task::log(const std::string& name, const at::Tensor& value) {
  const auto names = log_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end() || value.numel() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                found == names.end()
                    ? fmt::format("Task::log('{}'): log_names() has no such name{}", name,
                                  did_you_mean(name, names))
                    : fmt::format("Task::log('{}'): {} numbers, not one", name, value.numel()));
  }
  logged_.resize(names.size());
  logged_[static_cast<size_t>(found - names.begin())] = value.detach();
}

std::vector<at::Tensor> Task::take_logged() {
  logged_.resize(log_names().size());
  return std::exchange(logged_, {});
}

namespace {

std::unique_ptr<Task> make_detection(const Config& config) {
  return std::make_unique<DetectionTask>(make_db_loss(std::get<DbLossConfig>(config.loss)),
                                         std::get<ocr::DbPostprocessOptions>(config.postprocess),
                                         config.metric.det);
}

std::unique_ptr<Task> make_recognition(const Config& config) {
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

/// Of TopKMetric. Without `k`: 5 only where it says something.
std::vector<int64_t> top_ks(const MetricConfig& config, int64_t classes) {
  if (!config.top_k.empty()) return config.top_k;
  if (classes > 0 && classes <= 5) return {1};
  return {1, 5};
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
  if (name == "TopKMetric") return top_k_metric(top_ks(config, classes));
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

/// `loss` with the teacher's part.
BatchLoss taught_loss(const DistillationConfig& config) {
  const auto teacher = std::make_shared<Teacher>(config.teacher);
  return [config, teacher](const Batch& batch, const Tensors& outputs) {
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
  if (distillation != nullptr && trains) {
    parts.batch_loss = taught_loss(*distillation);
  }
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

}  // namespace

std::unique_ptr<Task> make_task(const Config& config, bool trains) {
  if (config.model.type == ModelType::kDet) return make_detection(config);
  if (config.model.type == ModelType::kRec) return make_recognition(config);
  return make_classification(config, trains);
}

}  // namespace lockstep
