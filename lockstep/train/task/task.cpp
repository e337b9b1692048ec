#include "lockstep/train/task/task.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/task/classification.h"
#include "lockstep/train/task/detection.h"
#include "lockstep/train/task/recognition.h"

namespace lockstep {

double EvalResult::metric(const std::string& name) const {
  std::string known;
  for (const auto& [own, value] : metrics) {
    if (own == name) return value;
    known += (known.empty() ? "" : ", ") + own;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric.main_indicator is '{}', evaluation gives {}", name, known));
}

namespace {

std::unique_ptr<Task> make_detection(const Config& config) {
  const auto& loss = std::get<DbLossConfig>(config.loss);
  DbLossOptions options;
  options.eps = loss.eps;
  options.l1_scale = loss.l1_scale;
  options.bce_scale = loss.bce_scale;
  options.dice_binary = loss.dice_for_bce;
  return std::make_unique<DetectionTask>(make_db_loss(options),
                                         std::get<ocr::DbPostprocessOptions>(config.postprocess),
                                         config.metric.det);
}

std::unique_ptr<Task> make_recognition(const Config& config) {
  const auto& loss = std::get<CtcLossConfig>(config.loss);
  CtcLossOptions options;
  options.pred_seq_len = loss.pred_seq_len;
  options.max_label_len = loss.max_label_len;
  return std::make_unique<RecognitionTask>(make_ctc_loss(options),
                                           std::get<ocr::CharacterOptions>(config.postprocess),
                                           config.metric.rec);
}

}  // namespace

std::unique_ptr<Task> make_task(const Config& config) {
  if (config.model.type == ModelType::kDet) return make_detection(config);
  if (config.model.type == ModelType::kRec) return make_recognition(config);
  return std::make_unique<ClassificationTask>(std::get<CrossEntropyConfig>(config.loss),
                                              config.model.head.num_classes);
}

}  // namespace lockstep
