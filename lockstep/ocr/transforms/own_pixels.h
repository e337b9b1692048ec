#pragma once

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Changes the image in place, and neither its size nor its regions. Draws what the transform
/// likes. Errors: kInvalidArgument if the image is not of 8-bit colours; the transform's.
void change_pixels(const OwnPixels& own, Sample& sample, Philox& draws);

}  // namespace lockstep::ocr
