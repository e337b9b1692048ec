#pragma once
// What a training run writes into its log before its first step and after its last one.

#include <string>

#include "lockstep/train/config/config.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/run/run_parts.h"
#include "lockstep/train/trainer.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// MindOCR's line about a data set: what this rank takes in an epoch, with the padding of training,
/// and the data set's number of samples.
std::string loader_line(const DataParts& data, bool training, int rank);

/// States the conditions for the same bits on another number of ranks.
std::string virtual_ranks_line(const VirtualRankRange& virtual_ranks, int ranks, int threads);

/// Data, checkpoint, rates and weights of the run; then, if there are steps left, the banner.
void log_start(TrainingLog& log, const Config& config, const RunParts& parts, const World& world,
               Trainer& trainer);

/// Prints the places of results and the next command, if a command started the run: its end on
/// rank 0.
void log_end(TrainingLog& log, const Trainer& trainer, bool by_command);

}  // namespace lockstep::inline internal
