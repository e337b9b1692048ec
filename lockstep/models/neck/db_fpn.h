#pragma once

#include <memory>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep {

/// The feature pyramid of DBNet: four maps, of strides 4 to 32, become one of stride 4.
/// Each passes a 1x1 convolution to C = out_channels. From coarse to fine each is doubled in size
/// (nearest neighbour) and added to the next. Each passes a 3x3 convolution to C / 4 and is resized
/// to the finest size; the four are concatenated, coarsest first. With `use_asf` each is weighted
/// before (make_scale_fusion()).
/// forward: (N, in_channels[i], H_i, W_i) for i in 0..3 -> (N, C, H_0, W_0).
/// Names: unify_channels.I, out.I, fuse.*. Initial weights: he_uniform_().
/// Source: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", 2020.
/// Errors: kInvalidArgument for other than four maps, or a C that 4 does not divide.
std::shared_ptr<Neck> make_db_fpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec);

}  // namespace lockstep
