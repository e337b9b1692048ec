#pragma once

#include <memory>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep {

/// MobileNetV3 as PP-OCRv3's text detector has it. Other than in det_mobilenet_v3 every block
/// expands, convolutions of stride 2 pad on both sides, and the four outputs are fixed: what stands
/// before each block of stride 2 from stride 4 on, and a last 1x1 convolution to 960 (small: 576)
/// channels. All widths are times `alpha`, rounded to multiples of 8; squeeze-and-excitation is on
/// a quarter of the channels, rounded down, and left out with disable_se. forward: (N, 3, H, W) ->
/// (N, C_i, ...) of strides 4, 8, 16, 32. Names: conv.{conv,bn},
/// stages.I.J.{expand_conv,bottleneck_conv,linear_conv}.{conv,bn}, stages.I.J.mid_se.{conv1,conv2}.
/// Source: Howard et al., "Searching for MobileNetV3", ICCV 2019, as MindOCR has it.
/// Errors: kInvalidArgument for another architecture, or an alpha that is not 0.35, 0.5, 0.75, 1 or
/// 1.25.
std::shared_ptr<FeatureBackbone> make_det_mobilenet_v3_enhance(const BackboneSpec& spec);

}  // namespace lockstep
