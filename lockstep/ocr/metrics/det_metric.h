#pragma once
// Compares found regions with the ground truth: MindOCR's DetMetric.

#include <array>
#include <span>

#include "lockstep/ocr/options.h"
#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Counts of one image or of many: they add up over images and ranks.
struct DetCounts {
  double matched = 0;  ///< Ground truths that were found.
  double missed = 0;   ///< Ground truths that were not.
  double wrong = 0;    ///< Detections of nothing.

  static constexpr size_t kEntries = 3;
  std::array<double, kEntries> flat() const { return {matched, missed, wrong}; }
  static DetCounts from(std::span<const double, kEntries> flat) {
    return {flat[0], flat[1], flat[2]};
  }
  DetCounts& operator+=(const DetCounts& other);
};

/// Counts of one image. Ignored are invalid polygons (see Region) of either side, and detections
/// with more than half of their area in one ignored ground truth. Each other detection takes the
/// first ground truth, in the order given, with an IoU above 0.5, and is wrong if there is none.
/// Further detections of a ground truth count as nothing. With `one_to_one` (ICDAR 2015) ground
/// truths take, in their order, the first free detection. A further detection may match another
/// ground truth and is wrong otherwise.
DetCounts det_counts(std::span<const Polygon> found, std::span<const TextRegion> truth,
                     const DetMetricOptions& options);

struct DetFigures {
  double recall = 0;     ///< Share of the ground truths that were found.
  double precision = 0;  ///< Found ones over found and wrong ones.
  double f_score = 0;    ///< Harmonic mean of both. MindOCR's name: "f-score".
};

/// 0 for empty denominators.
DetFigures det_figures(const DetCounts& counts);

}  // namespace lockstep::ocr
