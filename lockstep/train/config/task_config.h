#pragma once
// `loss:`, `postprocess:` and `metric:` of a configuration.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/models/spec/loss_config.h"
#include "lockstep/ocr/metrics/options.h"
#include "lockstep/ocr/postprocess/options.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep {

/// CrossEntropySmooth.
struct CrossEntropyConfig {
  double smoothing = 0;  ///< Label smoothing, in [0, 1).
};

using LossConfig = std::variant<CrossEntropyConfig, DbLossConfig, CtcLossConfig>;

/// ClsPostprocess.
struct ClassNames {
  std::vector<std::string> label_list;  ///< One for each class, in their order; or none.
};

/// ClsPostprocess, DBPostprocess, RecCTCLabelDecode.
using PostprocessConfig =
    std::variant<ClassNames, ocr::DbPostprocessOptions, ocr::CharacterOptions>;

struct MetricConfig {
  std::string name = "ClsMetric";  ///< Or DetMetric, RecMetric.
  /// By which checkpoints are ranked. ClsMetric: "acc" or "top_5"; DetMetric: "f-score", "recall"
  /// or "precision"; RecMetric: "acc" or "norm_edit_distance".
  std::string main_indicator = "acc";
  ocr::DetMetricOptions det;
  ocr::RecMetricOptions rec;
};

}  // namespace lockstep
