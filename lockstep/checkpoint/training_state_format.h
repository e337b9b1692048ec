#pragma once
// The text of a checkpoint's state.json.

#include <filesystem>
#include <map>
#include <string>

#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// In a checkpoint's folder; a folder without it is no checkpoint.
inline constexpr const char* kStateFile = "state.json";

using FileDigests = std::map<std::string, FileDigest>;

/// JSON text with a line feed at its end. Doubles round-trip; NaN and infinity become null.
std::string encode_training_state(const TrainingState& state, const FileDigests& files);

struct DecodedTrainingState {
  TrainingState state;
  FileDigests files;
};

/// Errors: kCorrupt, which names `file` and the field that is missing, unknown or of a wrong type
/// or range; kInvalidArgument if a newer Lockstep wrote it.
DecodedTrainingState decode_training_state(const std::string& json, const std::string& file);

/// False for the JSON of another program, which has no object `files`. True for what is no JSON: a
/// damaged state.json.
bool may_be_training_state(const std::string& text);

/// The digest of a file of the checkpoint whose state.json is `state_file`. Errors: kCorrupt if
/// there is none.
const FileDigest& digest_of(const FileDigests& files, const std::string& name,
                            const std::filesystem::path& state_file);

}  // namespace lockstep::inline internal
