#pragma once

#include <vector>

#include "lockstep/ocr/sample.h"

namespace lockstep {

/// What evaluation compares with: the samples of a batch, without their pixels.
struct TextTruths {
  std::vector<ocr::Sample> samples;
};

}  // namespace lockstep
