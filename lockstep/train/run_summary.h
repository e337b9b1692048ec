#pragma once
// Counts and sizes of a run, printed before it starts.

#include <c10/core/Device.h>

#include <string>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

struct RunSummary {
  int64_t parameters = 0;
  int64_t trainable = 0;
  int num_ranks = 1;
  int num_virtual_ranks = 1;  ///< Equals the ranks without parallel.virtual_ranks.
  int data_threads = 1;       ///< Threads that make batches.
  int64_t train_samples = 0;
  std::string samples_note{};  ///< Source of the number of samples, if the data are missing.
  int64_t samples_a_rank = 0;  ///< Of the rank with the most samples; so are the bytes below.
  int64_t samples_a_virtual_rank = 0;
  int64_t steps_per_epoch = 0;  ///< Micro-steps.
  int64_t optimizer_steps = 0;  ///< Of the whole run.
  int64_t weights_bytes = 0;    ///< Per rank, as the next three; with masters and average.
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t batches_bytes = 0;  ///< Of images made ahead.
};

/// The arithmetic part of the summary; the caller fills in parameters, ranks, virtual ranks and
/// samples. `sample_bytes`: see CheckedData.
RunSummary complete_summary(RunSummary summary, const Config& config, int optimizer_copies,
                            int64_t sample_bytes);

/// Number of optimizer steps in `steps` micro-steps of one epoch; the micro-steps left at its end
/// make one, too.
int64_t optimizer_steps_of(int64_t steps, const TrainSection& train);
/// A run's place, from which its remaining steps follow.
struct RunPlace {
  int64_t done = 0;          ///< Optimizer steps before it.
  int64_t left = 0;          ///< Micro-steps of the epoch under way.
  int64_t later_epochs = 0;  ///< Whole epochs after that one; below 0: no epoch is under way.
  int64_t steps_per_epoch = 0;
};
/// Number of optimizer steps of the whole run, limited by epochs and max_steps.
int64_t all_optimizer_steps(const RunPlace& place, const TrainSection& train);
/// Micro-steps of an epoch, or the rest of one, of `samples` samples over all ranks, of which the
/// batches are `batches`. With parallel.global_batch, drop_remainder drops what does not fill a
/// whole optimizer step, so that the steps do not depend on the number of ranks.
int64_t micro_steps_of(int64_t batches, int64_t samples, const Config& config, int parts);
/// Errors: kInvalidArgument if an epoch has no step.
void require_batch(int64_t steps_per_epoch, int64_t samples_a_virtual_rank, const Config& config);

/// The types of the computation and the loss scale: "amp_level O1: convolutions ...". Empty for O0
/// without a loss scaler.
std::string precision_line(const Config& config, c10::DeviceType device = c10::kCPU);

/// The summary for display: "Model: ...\nParameters: ...\n...".
std::string describe(const RunSummary& summary, const Config& config,
                     c10::Device device = c10::kCPU);

}  // namespace lockstep::inline internal
