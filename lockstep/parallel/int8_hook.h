#pragma once
// Gradients as numbers of 8 bits, with what rounding took carried over.

#include <memory>

#include "lockstep/comm_hook.h"

namespace lockstep {

/// The hook "int8" of make_comm_hook(). Every rank sends each other one its part of the bucket,
/// adds up what it gets, in rank order, and sends the sum to all: 2 (P - 1) / P bytes a number and
/// rank, a quarter of float32's, and a scale for 256 (see compress.h). Both roundings leave a rest,
/// which is added to the next step's gradients (error feedback), so nothing is lost but delayed.
/// Gradients that are not float32 or float64 travel as they are.
///
/// A bucket goes in pieces, so that one is encoded or added up while another is on its way; a
/// bucket's sums are made when the next bucket has been sent, so start() may wait for the peers.
/// Source: Seide et al., "1-bit stochastic gradient descent", Interspeech 2014 (the feedback).
std::shared_ptr<CommHook> make_int8_hook();

}  // namespace lockstep
