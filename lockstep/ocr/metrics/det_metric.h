#pragma once
// How well found regions cover the text that is there: MindOCR's DetMetric.

#include <array>
#include <span>

#include "lockstep/ocr/metrics/options.h"
#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Of one image or of many: counts of images add up, whichever rank evaluated them.
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

/// Of one image. Invalid polygons (see Region) of either side do not count, nor do detections of
/// which more than half lies in one ignored ground truth. Each other detection takes the first
/// ground truth, in the order given, with an IoU above 0.5, and is wrong where there is none.
/// Further detections of a ground truth count as nothing; with `one_to_one` they may take another
/// and are wrong otherwise, and ground truths choose, in their order, the first free detection
/// (ICDAR 2015).
DetCounts det_counts(std::span<const Polygon> found, std::span<const TextRegion> truth,
                     const DetMetricOptions& options);

struct DetFigures {
  double recall = 0;     ///< Part of the ground truths that were found.
  double precision = 0;  ///< Found ones over found and wrong ones.
  double f_score = 0;    ///< Harmonic mean of both. MindOCR's name: "f-score".
};

/// 0 where nothing is to be divided by.
DetFigures det_figures(const DetCounts& counts);

}  // namespace lockstep::ocr
