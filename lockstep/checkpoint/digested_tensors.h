#pragma once
// The files of tensors in a checkpoint (see safetensors.h), with their digests.

#include <filesystem>

#include "lockstep/safetensors.h"
#include "lockstep/training_state.h"

namespace lockstep {

/// Writes a file of a folder that is not in use yet, and syncs it, but not its name. Returns its
/// digest, computed while writing. After an error a part of the file may be there. Errors: those of
/// save_tensors().
FileDigest save_digested(const std::filesystem::path& path, const TensorMap& tensors,
                         const StoredMetadata& metadata = {});

/// Reads a file that has to have the bytes that were saved. They are digested while they are read,
/// once. Errors: those of load_tensors(), and kCorrupt for other bytes.
LoadedTensors load_digested(const std::filesystem::path& path, const FileDigest& saved);

}  // namespace lockstep
