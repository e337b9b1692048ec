#pragma once

#include <memory>

#include "lockstep/models/model.h"

namespace lockstep {

/// Passes the columns of a feature map as a sequence through two layers of bidirectional LSTM.
/// forward: one (N, in_channels, 1, W) -> (W, N, 2 hidden_size).
/// Names: seq_encoder.weight_ih_l0, seq_encoder.weight_ih_l0_reverse, ...; gates in the order i, f,
/// g, o and two biases, as in PyTorch and MindSpore. Initial values: U(+-1/sqrt(hidden_size)).
/// Errors: kInvalidArgument for a hidden_size below 1. forward() throws it for a map of another
/// height than 1, from images that are not 32 rows high.
std::shared_ptr<Neck> make_rnn_encoder(int64_t in_channels, int64_t hidden_size);

}  // namespace lockstep
