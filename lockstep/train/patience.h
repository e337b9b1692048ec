#pragma once
// Metrics that a schedule or early stopping watches from one evaluation to the next.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint_folder.h"
#include "lockstep/train.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Errors: kInvalidArgument if `key`, whose value is `metric`, is neither "loss" nor one of
/// `known`, with the nearest.
void check_watched(const std::string& key, const std::string& metric,
                   const std::vector<std::string>& known);

/// The watched value. Errors: kInvalidArgument if an evaluation has none of that name, or computes
/// no loss.
double watched_value(const std::string& key, const std::string& metric, const EvalResult& result);

/// The state to begin with: the `saved` one if it is of the same metric, and of the same direction.
PatienceState begin_patience(const PatienceConfig& config, bool higher_is_better,
                             const std::optional<PatienceState>& saved);

/// Takes a value into account. It improves if it is better than the best so far by more than
/// min_delta; the first number does, and NaN does not. Returns whether the patience has run out:
/// `waited` is then at least `patience`.
bool note_value(PatienceState& state, const PatienceConfig& config, double value);

}  // namespace lockstep::inline internal
