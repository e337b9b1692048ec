#include "lockstep/train/task/losses_and_metrics.h"

#include <fmt/format.h>

#include <variant>

#include "lockstep/error.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/task/class_losses.h"
#include "lockstep/train/task/class_metrics.h"
#include "lockstep/train/task/class_scores.h"
#include "lockstep/train/task/ocr_tasks.h"
#include "lockstep/train/task/text_metrics.h"

namespace lockstep::inline internal {
namespace {

/// The configuration checks the same where it selects the metric.
void check_top_ks(const MetricConfig& config, int64_t classes) {
  for (const int64_t k : config.top_k) {
    if (k <= classes || classes == 0) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("metric: k of TopKMetric has {}, model.head.num_classes is {}", k, classes));
  }
}

void check_has_classes(const std::string& metric, int64_t classes) {
  if (classes > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("metric: {} needs model.head.num_classes", metric));
}

}  // namespace

LoggedLoss make_built_in_loss(const LossConfig& config) {
  if (const auto* db = std::get_if<DbLossConfig>(&config)) return text_loss(make_db_loss(*db));
  if (const auto* ctc = std::get_if<CtcLossConfig>(&config)) return text_loss(make_ctc_loss(*ctc));
  return class_loss(config);
}

std::unique_ptr<Metric> make_built_in_metric(const MetricConfig& config, const std::string& name,
                                             int64_t classes,
                                             const std::shared_ptr<const ClassScores>& scores) {
  if (name == "TopKMetric") {
    check_top_ks(config, classes);
    return top_k_metric(config.top_ks(classes));
  }
  if (name == "F1Metric") {
    check_has_classes(name, classes);
    return f1_metric(classes, config.averages);
  }
  if (name == "AucMetric") return auc_metric(scores);
  if (name == "MapMetric") return map_metric(scores);
  if (name == "DetMetric") return det_metric(config.det);
  if (name == "RecMetric") return rec_metric(config.rec);
  return accuracy_metric(classes);
}

}  // namespace lockstep::inline internal
