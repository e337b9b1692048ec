#pragma once

#include <memory>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep {

/// One linear layer `dense1`, or with mid_channels two (`dense1`, dropout, `dense2`, no activation
/// between). forward: (W, N, in_channels) -> in training logits (W, N, K), else probabilities (N,
/// W, K); K = out_channels, the blank is the last class.
/// Initial values of both layers: weight_init "normal" (deviation 0.01) or "crnn_customised"
/// (U(+-1/sqrt(in_channels))), bias_init "zeros" or "crnn_customised".
/// Errors: kInvalidArgument for other names, and for sizes below 1.
std::shared_ptr<Model> make_ctc_head(int64_t in_channels, const HeadSpec& spec);

}  // namespace lockstep
