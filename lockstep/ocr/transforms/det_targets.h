#pragma once
// The target maps of a detector (DBNet).

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Distance by which DBNet shrinks or grows a polygon: area (1 - ratio^2) / perimeter, pixels.
/// 0 for one without a perimeter. Source: Liao et al., AAAI 2020, section 3.4 ("Label generation").
double offset_distance(const Polygon& polygon, double shrink_ratio);

/// The probability map's target: `binary_map`, H x W, is 1 inside each shrunk polygon, else 0.
/// `mask`, H x W, is 0 inside regions that do not count, else 1.
///
/// A region does not count if it was ignored before, or if it shrinks to nothing. Nor does one
/// whose upright bounding box has a shorter side below min_text_size. It is ignored from then on.
/// If it falls apart, its first part is drawn, as in MindOCR.
void make_shrink_map(const ShrinkBinaryMap& options, Sample& sample);

/// The threshold map's target, for regions that are not ignored. `thresh_mask`, H x W, is 1 inside
/// each polygon grown by offset_distance() D, else 0. `thresh_map`, H x W, goes from thresh_max on
/// the polygons' edges down to thresh_min at distance D from them and beyond.
///
/// The distance from a pixel to an edge is MindOCR's: if the angle at the pixel is obtuse, to the
/// line, else to the nearer end. Cost: corners x pixels of the boxes around the grown polygons, in
/// float32.
void make_border_map(const BorderMap& options, Sample& sample);

}  // namespace lockstep::ocr
