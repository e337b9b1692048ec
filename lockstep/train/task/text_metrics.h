#pragma once
// The built-in metrics of text: MindOCR's. All sums are exact, so their bits do not depend on the
// order of addition, nor on the number of ranks. They compare text_pictures().

#include <memory>

#include "lockstep/ocr/options.h"
#include "lockstep/train.h"

namespace lockstep::inline internal {

/// "recall", "precision", "f-score" of what was found; see ocr::det_counts().
std::unique_ptr<Metric> det_metric(const ocr::DetMetricOptions& options);

/// "acc", "norm_edit_distance" of what was read; see ocr::RecScorer, also for errors. Lines: with
/// print_flag each text beside its label, and the number of correct ones.
std::unique_ptr<Metric> rec_metric(const ocr::RecMetricOptions& options);

}  // namespace lockstep::inline internal
