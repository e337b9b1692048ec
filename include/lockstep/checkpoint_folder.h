#pragma once
// The folders of checkpoints on disk, without their content: see training_checkpoint.h.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/keep_policy.h"

namespace lockstep {

/// Parameters and buffers, in each checkpoint's folder.
inline constexpr const char* kModelFile = "model.safetensors";
/// The moving average of both, where a run keeps one; evaluation uses it.
inline constexpr const char* kEmaFile = "ema.safetensors";

/// "step_000020"; more digits when needed.
std::string step_folder_name(int64_t step);

/// Every complete checkpoint of `dir` by step, with the value of metric `metric` from its
/// state.json (none if state.json is damaged or holds another metric). Empty if there is no such
/// folder.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& dir,
                                              const std::string& metric = "");

/// The folder of one checkpoint: `path` itself if it holds a state.json, else the target of its
/// `latest`, else its newest step_*. Errors: kNotFound naming the places searched, kInvalidArgument
/// for a file.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);
/// The warning for a find_checkpoint() that cannot take `latest`: "DIR/latest points to
/// step_000020, which is no whole checkpoint any more: step_000018 is taken". Else empty.
std::string lost_latest_warning(const std::filesystem::path& path);
/// Whether find_checkpoint() would find a checkpoint, so that a run resumes.
bool has_checkpoint(const std::filesystem::path& path);

/// The file of weights behind `path`: `path` itself, or in a checkpoint's folder (see
/// find_checkpoint()) kModelFile; with `averaged` kEmaFile, if it exists.
std::filesystem::path weights_in(const std::filesystem::path& path, bool averaged);

}  // namespace lockstep
