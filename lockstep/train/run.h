#pragma once
// The three things that `lockstep train` does.

#include "lockstep/train/config/config.h"
#include "lockstep/world.h"

namespace lockstep {

/// Collective. Trains as configured; results go to train.ckpt_save_dir (see below). Returns the
/// process's exit status: 0, or 128 + the signal that ended the run early. Errors: those of its
/// parts; kMismatch where the weights at the end are not the same, bit by bit, on all ranks: what
/// was saved stays.
///
/// Written there: args.yaml (effective configuration), train_config.yaml (the file as given),
/// log_{rank}.txt, metrics.jsonl, events.jsonl, result.log, result.svg, checkpoints (see
/// training_checkpoint.h). Nothing is written before model and data are known to be
/// good. result.svg is drawn at every end, after a failure too.
int run_training(const Config& config, World world);

/// Collective. Evaluates eval.ckpt_load_path, or the best checkpoint of train.ckpt_save_dir.
/// Errors: kInvalidArgument without a section `eval`, kNotFound.
int run_evaluation(const Config& config, World world);

/// Collective. Builds the model, reads the checkpoint to go on from, and prints the effective
/// configuration and the plan of the run on rank 0. Of the data only the files' sizes are looked
/// at; where there are none, the official size is assumed. Errors: those that the start of
/// run_training() would meet, as far as can be seen without them.
int run_check(const Config& config, World world);

}  // namespace lockstep
