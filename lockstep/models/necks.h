#pragma once
// Necks of networks for text: the parts between backbone and head.

#include <memory>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep::inline internal {

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

/// Passes the columns of a feature map as a sequence through two layers of bidirectional LSTM.
/// forward: one (N, in_channels, 1, W) -> (W, N, 2 hidden_size).
/// Names: seq_encoder.weight_ih_l0, seq_encoder.weight_ih_l0_reverse, ...; gates in the order i, f,
/// g, o and two biases, as in PyTorch and MindSpore. Initial values: U(+-1/sqrt(hidden_size)).
/// Errors: kInvalidArgument for a hidden_size below 1. forward() throws it for a map of another
/// height than 1, from images that are not 32 rows high.
std::shared_ptr<Neck> make_rnn_encoder(int64_t in_channels, int64_t hidden_size);

}  // namespace lockstep::inline internal
