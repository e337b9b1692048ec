#pragma once
// The maps that a detector (DBNet) is taught.

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Distance by which DBNet shrinks or grows a polygon: area (1 - ratio^2) / perimeter, pixels.
/// 0 for one without a perimeter. Source: Liao et al., AAAI 2020, section 3.4 ("Label generation").
double offset_distance(const Polygon& polygon, double shrink_ratio);

/// The probability map's target: `binary_map`, H x W, is 1 inside each shrunk polygon, else 0;
/// `mask`, H x W, is 0 inside regions that do not count, else 1.
///
/// A region does not count, and is ignored from here on, when it was ignored before, when the
/// shorter side of the upright box around it is below min_text_size, or when it shrinks to nothing.
/// Of one that falls apart, the first part is drawn, as in MindOCR.
void make_shrink_map(const ShrinkBinaryMap& options, Sample& sample);

/// The threshold map's target, for regions that are not ignored: `thresh_mask`, H x W, is 1 inside
/// each polygon grown by offset_distance() D, else 0; `thresh_map`, H x W, goes from thresh_max on
/// the polygons' edges down to thresh_min at distance D from them and beyond.
///
/// MindOCR's distance from a pixel to an edge: to the line through it where the pixel sees the edge
/// under more than a right angle, else to its nearer end.
/// Cost: corners x pixels of the boxes around the grown polygons, in float32.
void make_border_map(const BorderMap& options, Sample& sample);

}  // namespace lockstep::ocr
