#pragma once
// The batch that is left at the end of an epoch without drop_remainder.

#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// A warning if each epoch of so many samples ends with a batch of one sample, which a BatchNorm
/// layer of `model` may refuse: see explain(). Otherwise "". With parallel.sync_bn the layers have
/// the samples of all ranks.
std::string last_batch_note(const Config& config, const torch::nn::Module& model,
                            int64_t samples_a_virtual_rank, int num_ranks);

/// kInvalidArgument with the cause and the way out if `error` is BatchNorm's refusal of a batch of
/// one sample, in which each channel has one value. Other errors are thrown again.
[[noreturn]] void explain(const c10::Error& error, int64_t samples_in_batch);

}  // namespace lockstep::inline internal
