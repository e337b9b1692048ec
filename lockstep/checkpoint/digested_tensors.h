#pragma once
// The files of tensors in a checkpoint (see safetensors.h), with their digests.

#include <filesystem>

#include "lockstep/base/new_file.h"
#include "lockstep/safetensors.h"
#include "lockstep/training_state.h"

namespace lockstep {

/// Adds a file to `files`. Returns its digest, computed while writing. Errors: those of
/// save_tensors().
FileDigest write_digested(NewFiles& files, const std::filesystem::path& path,
                          const TensorMap& tensors, const StoredMetadata& metadata = {});

/// Reads a file that has to have the bytes that were saved. They are digested while they are read,
/// once. Errors: those of load_tensors(), and kCorrupt for other bytes.
LoadedTensors load_digested(const std::filesystem::path& path, const FileDigest& saved);

}  // namespace lockstep
