#pragma once

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Takes out regions that have no point in common with the image (where RandomCropWithBBox left
/// padding: with `actual_size`), and ignores those of which less than min_area pixels are visible.
/// With clip_to_visible_area, polygons become their visible part (the largest where it is in
/// pieces), ignored below min_vertices corners; else they stay as they are.
void validate_polygons(const ValidatePolygons& options, Sample& sample);

}  // namespace lockstep::ocr
