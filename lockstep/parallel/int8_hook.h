#pragma once
// Sends gradients as 8-bit numbers and carries rounding errors over.

#include <memory>

#include "lockstep/comm_hook.h"

namespace lockstep::inline internal {

/// The hook "int8" of make_comm_hook(). Every rank sends each other rank its part of the bucket,
/// adds the received parts in rank order, and sends the sum to all. Cost: 2 (P - 1) / P bytes per
/// number and rank, a quarter of float32's, and a scale per 256 numbers (see compress.h). Both
/// roundings leave an error, which is added to the next step's gradients (error feedback): nothing
/// is lost, only delayed. Gradients other than float32 or float64 are sent unchanged.
///
/// A bucket is sent in pieces: one is encoded or added while another is on its way. Its sums are
/// made after the next bucket is sent, so start() may wait for the peers. Source: Seide et al.,
/// "1-bit stochastic gradient descent", Interspeech 2014 (the feedback).
std::shared_ptr<CommHook> make_int8_hook();

}  // namespace lockstep::inline internal
