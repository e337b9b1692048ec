#pragma once

#include <memory>

#include "lockstep/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep::inline internal {

/// The MobileNetV3 of PP-OCRv3's text detector. Unlike in det_mobilenet_v3, every block expands,
/// and convolutions of stride 2 pad on both sides. The four outputs are fixed: the inputs of each
/// block of stride 2 from stride 4 on, and a final 1x1 convolution (960 channels; small: 576). All
/// widths are times `alpha`, rounded to multiples of 8. Squeeze-and-excitation works on a quarter
/// of the channels, rounded down; disable_se removes it. forward: (N, 3, H, W) -> (N, C_i, ...) of
/// strides 4, 8, 16, 32. Names: conv.{conv,bn},
/// stages.I.J.{expand_conv,bottleneck_conv,linear_conv}.{conv,bn}, stages.I.J.mid_se.{conv1,conv2}.
/// Source: Howard et al., "Searching for MobileNetV3", ICCV 2019, in MindOCR's form. Errors:
/// kInvalidArgument for another architecture, or an alpha other than 0.35, 0.5, 0.75, 1 and 1.25.
std::shared_ptr<Backbone> make_det_mobilenet_v3_enhance(const BackboneSpec& spec);

}  // namespace lockstep::inline internal
