#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lockstep/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep::inline internal {

// The blocks of MobileNetV3; det_mobilenet_v3_enhance.cpp has them too.

/// A line of the paper's tables 1 and 2.
struct MobileBlock {
  int64_t kernel;
  int64_t expanded;
  int64_t out;
  bool squeezes;
  bool hard_swish;
  int64_t stride;
};

/// The blocks of "large", or those of "small" for any other name.
std::span<const MobileBlock> mobile_blocks(const std::string& architecture);

/// The multiple of 8 nearest to `channels`, at most a tenth below it.
int64_t round_to_8(double channels);

/// MobileNetV3 as a backbone of text detection.
/// The network is a list `features`: a stem (places 0 convolution, 1 norm, 2 activation) and the
/// inverted residual blocks (large: 15, small: 11). Convolution, norm and activation follow, to six
/// times the last block's channels: 21 places for large, 17 for small. out_stages are the places of
/// the outputs: [5, 8, 14, 20] of large have the strides 4, 8, 16 and 32. All widths are times
/// `alpha`, rounded to multiples of 8.
/// Squeeze-and-excitation works on a quarter of the channels, by 1x1 convolutions; the quarter is
/// rounded to a multiple of 8. With squeeze_v2 (se_version: SqueezeExciteV2) it uses linear layers,
/// rounded down. always_expand: the block that adds no channels has an expansion, too. Depthwise
/// convolutions of stride 2 pad as same_padding().
/// forward: (N, 3, H, W) -> (N, C_i, ceil(H / s_i), ceil(W / s_i)).
/// Names: features.{0,1}, features.I.layers.J, ...layers.J.{conv_reduce,conv_expand}.
/// Initial values: normal of deviation sqrt(2 / (kernel area * outputs)), linear layers 0.01;
/// biases 0. Source: Howard et al., "Searching for MobileNetV3", ICCV 2019; options of MindOCR.
/// Errors: kInvalidArgument for another architecture, places that do not exist or do not ascend,
/// alpha not above 0.
std::shared_ptr<Backbone> make_det_mobilenet_v3(const BackboneSpec& spec);

}  // namespace lockstep::inline internal
