#pragma once
// The batch that is left at the end of an epoch without drop_remainder.

#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Whether a layer of `module` is one of torch's BatchNorm layers.
bool has_batch_norm(const torch::nn::Module& module);

/// A warning if each epoch of so many samples ends with a batch of one sample, "" otherwise. For
/// models with BatchNorm, which may refuse it: see explain().
std::string last_batch_note(const LoaderConfig& loader, int64_t samples_a_virtual_rank);

/// kInvalidArgument with the cause and the way out if `error` is BatchNorm's refusal of a batch of
/// one sample, in which each channel has one value. Other errors are thrown again.
[[noreturn]] void explain(const c10::Error& error, int64_t samples_in_batch);

}  // namespace lockstep::inline internal
