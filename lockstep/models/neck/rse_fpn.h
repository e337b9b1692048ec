#pragma once

#include <memory>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep {

/// The feature pyramid of PP-OCRv3's text detector: DBNet's, with squeeze-and-excitation after
/// convolutions without a bias. With `shortcut` the attention is added to its input, else it
/// replaces it. Sizes grow as in nearest_places().
/// forward: (N, in_channels[i], H_i, W_i) for i in 0..3 -> (N, out_channels, H_0, W_0), the
/// coarsest first.
/// Names: ins_conv.I, inp_conv.I: in_conv, se_block.{conv1,conv2}. Initial values of in_conv:
/// he_uniform_(). Source: MindOCR's RSEFPN; Li et al., "PP-OCRv3", arXiv:2206.03001.
/// Errors: kInvalidArgument for other than four maps, or out_channels that 16 does not divide.
std::shared_ptr<Neck> make_rse_fpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec);

/// For each of `out` places the nearest of `in` ones, with aligned first and last places:
/// MindSpore's ResizeNearestNeighbor with align_corners. `in` and `out` at least 1.
std::vector<int64_t> nearest_places(int64_t in, int64_t out);

}  // namespace lockstep
