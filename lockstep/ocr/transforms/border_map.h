#pragma once

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// The threshold map's target, for regions that are not ignored: `thresh_mask`, H x W, is 1 inside
/// each polygon grown by offset_distance() D, else 0; `thresh_map`, H x W, goes from thresh_max on
/// the polygons' edges down to thresh_min at distance D from them and beyond.
///
/// MindOCR's distance from a pixel to an edge: to the line through it where the pixel sees the edge
/// under more than a right angle, else to its nearer end.
/// Cost: corners x pixels of the boxes around the grown polygons, in float32.
void make_border_map(const BorderMap& options, Sample& sample);

}  // namespace lockstep::ocr
