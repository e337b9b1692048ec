#include "lockstep/train/task/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/task/classification.h"
#include "lockstep/train/task/detection.h"
#include "lockstep/train/task/own_task.h"
#include "lockstep/train/task/recognition.h"

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

std::unique_ptr<Task> make_classification(const Config& config) {
  const int64_t classes = config.model.head.num_classes;
  const auto* own = std::get_if<OwnLoss>(&config.loss);
  auto loss = own ? checked(*own) : cross_entropy(std::get<CrossEntropyConfig>(config.loss));
  if (!config.metric.own) {
    return std::make_unique<ClassificationTask>(std::move(loss), classes);
  }
  auto metric = config.metric.own->make(classes);
  if (metric) return std::make_unique<OwnTask>(std::move(loss), std::move(metric));
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric: '{}' made no metric", config.metric.own->name));
}

}  // namespace

std::unique_ptr<Task> make_task(const Config& config) {
  if (config.model.type == ModelType::kDet) return make_detection(config);
  if (config.model.type == ModelType::kRec) return make_recognition(config);
  return make_classification(config);
}

}  // namespace lockstep
