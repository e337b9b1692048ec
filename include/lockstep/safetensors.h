#pragma once
// Named tensors in a safetensors file, readable from Python, Rust, JavaScript and others.

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "lockstep/training_state.h"

namespace lockstep {

using StoredMetadata = std::map<std::string, std::string>;
using TensorMap = std::map<std::string, at::Tensor>;

/// Replaces `path` by a file with these tensors, completely or not at all. Equal tensors and
/// metadata give equal bytes. Tensors may lie on any device, with any strides; they are copied to
/// the host one at a time. Each of several tensors that share memory is written whole.
/// Cost: one pass over the bytes, no second copy of contiguous host tensors.
/// Errors: kInvalidArgument naming tensor and dtype (none: undefined), kIo (disk full among
/// others). The format has no quantized types, and of the complex types only complex64.
/// `digest`: gets the digest of the file, computed while writing.
void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata = {}, FileDigest* digest = nullptr);

struct LoadedTensors {
  TensorMap tensors;  ///< On the CPU, each owning its memory.
  StoredMetadata metadata;
};

/// Reads a whole file. The header is checked against the file's size first, so no more memory than
/// that is allocated.
/// Errors: kNotFound, kCorrupt (file, tensor and offset), kInvalidArgument for a dtype that
/// libtorch does not have.
LoadedTensors load_tensors(const std::filesystem::path& path);

/// The same of a file of a checkpoint, which has to have the bytes that were saved. They are
/// digested while they are read, once. Errors: also kCorrupt for other bytes.
LoadedTensors load_tensors(const std::filesystem::path& path, const FileDigest& saved);

}  // namespace lockstep
