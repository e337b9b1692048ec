#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Of a label. Beyond any image; small enough that areas stay exact in double precision.
inline constexpr double kMaxCoordinate = 1e6;

/// The regions of a detection label: a JSON list of {"transcription": TEXT, "points": [[x, y],
/// ..]}, other keys passed over. TEXT of "###" or "*" makes a region ignored.
/// Errors: kCorrupt saying which entry is wrong and how.
std::vector<TextRegion> parse_regions(std::string_view json);

/// Marks as ignored every region that has no inside to train on: fewer than three corners, no area,
/// edges that cross. Adds to `remarks` a line for each.
void ignore_unusable(std::vector<TextRegion>& regions, std::vector<std::string>& remarks);

}  // namespace lockstep::ocr
