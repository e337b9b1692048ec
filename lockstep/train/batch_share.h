#pragma once
// parallel.global_batch: as many samples in an optimizer step on any number of ranks.
//
// A rank computes at most train.loader.batch_size samples at a time, because that is what its
// memory was found to hold. So fewer ranks take more micro-steps, and not larger ones.

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/train/config/config.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// The part of one rank, or virtual rank, in an optimizer step.
struct BatchShare {
  int64_t batch_size = 1;    ///< Samples of a micro-step.
  int64_t accumulation = 1;  ///< Micro-steps.
  bool operator==(const BatchShare&) const = default;
};

/// Shares `batch` samples among `parts`, in as few equal micro-steps of up to `most` samples as can
/// be. Nothing if the parts cannot be equal. Nothing if equal micro-steps are more than twice as
/// many as unequal ones would be, or have a single sample where `most` is larger.
std::optional<BatchShare> share_batch(int64_t batch, int parts, int64_t most);

/// The nearest global batch, not above or not below `batch`, that can be shared; below it 0 if
/// there is none.
int64_t shared_batch_below(int64_t batch, int parts, int64_t most);
int64_t shared_batch_above(int64_t batch, int parts, int64_t most);
/// The nearer of the two; the lower one if they are equally near.
int64_t nearest_shared_batch(int64_t batch, int parts, int64_t most);

/// Sets the loader's batch and the accumulation of `config` for this world; without
/// parallel.global_batch it has no effect. In a later generation the number of ranks may have
/// changed because hosts joined or left. If these cannot share the batch, they take the nearest
/// that they can, and the result is a line about it; else an empty one. Errors: kInvalidArgument
/// naming the nearest numbers that are allowed.
std::string share_global_batch(Config& config, const World& world);

/// "Global batch: 256 = 32 x 2 ranks x 4 accumulated (parallel.global_batch)"; empty without it.
std::string batch_line(const Config& config, int parts);

}  // namespace lockstep::inline internal
