#pragma once

#include <torch/optim/optimizer.h>

#include <filesystem>

#include "lockstep/checkpoint/training_state.h"
#include "lockstep/models/model.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// Where a run goes on.
struct Resumed {
  TrainingState state;
  std::filesystem::path from;  ///< Empty: from the start.
};

/// Fills model and optimizer from the checkpoint that model.resume names, or, for True, from the
/// one in train.ckpt_save_dir if there is any. Errors: as load_checkpoint().
Resumed resume(const Config& config, Model& model, torch::optim::Optimizer& optimizer);

}  // namespace lockstep
