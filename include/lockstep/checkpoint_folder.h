#pragma once
// The folders of checkpoints on the disk, without what is in them: see training_checkpoint.h.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/keep_policy.h"

namespace lockstep {

/// Parameters and buffers, in each checkpoint's folder.
inline constexpr const char* kModelFile = "model.safetensors";
/// The moving average of both, where a run keeps one: what it evaluates.
inline constexpr const char* kEmaFile = "ema.safetensors";

/// "step_000020"; more digits when needed.
std::string step_folder_name(int64_t step);

/// Every whole checkpoint of `dir` by step, with the value of metric `metric` that its state.json
/// holds (none when it holds another metric, or is damaged). Empty when there is no such folder.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& dir,
                                              const std::string& metric = "");

/// The folder of one checkpoint: `path` itself when it holds a state.json, else what its `latest`
/// points to, else its newest step_*. Errors: kNotFound saying what was looked for,
/// kInvalidArgument for a file.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);
/// Where find_checkpoint() has to take another than `latest`: "DIR/latest points to step_000020,
/// which is no whole checkpoint any more: step_000018 is taken". Else empty.
std::string lost_latest_warning(const std::filesystem::path& path);
/// Whether find_checkpoint() would find one: to start or to resume.
bool has_checkpoint(const std::filesystem::path& path);

/// The file of weights that `path` stands for: itself, or of a checkpoint's folder (see
/// find_checkpoint()) kModelFile; with `averaged` kEmaFile, where there is one.
std::filesystem::path weights_in(const std::filesystem::path& path, bool averaged);

}  // namespace lockstep
