#pragma once
// Named tensors in a safetensors file, readable from Python, Rust, JavaScript and others.

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

namespace lockstep {

using StoredMetadata = std::map<std::string, std::string>;
using TensorMap = std::map<std::string, at::Tensor>;

/// Replaces `path` by a file with these tensors, completely or not at all. Equal tensors and
/// metadata give equal bytes. Tensors may lie on any device, with any strides; they are copied to
/// the host one at a time. Each of several tensors that share memory is written whole.
/// Cost: one pass over the bytes, no second copy of contiguous host tensors.
/// Errors: kInvalidArgument naming tensor and dtype (none: undefined), kIo (disk full among
/// others). The format has no quantized types, and of the complex types only complex64.
void save_tensors(const std::filesystem::path& path, const TensorMap& tensors,
                  const StoredMetadata& metadata = {});

struct LoadedTensors {
  TensorMap tensors;  ///< On the CPU, each owning its memory.
  StoredMetadata metadata;
};

/// Reads a whole file. The header is checked against the file's size first, so no more memory than
/// that is allocated.
/// Errors: kNotFound, kCorrupt (file, tensor and offset), kInvalidArgument for a dtype that
/// libtorch does not have.
LoadedTensors load_tensors(const std::filesystem::path& path);

}  // namespace lockstep
