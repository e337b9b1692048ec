#pragma once
// Private to the layer: libtorch's element types and those of files.

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <string>

#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// Throws kCorrupt: "FILE: tensor 'NAME' WHAT".
[[noreturn]] inline void throw_corrupt_tensor(const std::string& file, const std::string& name,
                                              const std::string& what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("{}: tensor '{}' {}", file, name, what));
}

/// Errors: kInvalidArgument, which names the tensor, if it is undefined, sparse or of a type that
/// files lack.
StoredType stored_type(const std::string& name, const at::Tensor& tensor);

/// Errors: kInvalidArgument, which names the tensor of a network, unless values can be copied into
/// it: it is sparse, or several of its elements are one in memory.
void check_fillable(const std::string& name, const at::Tensor& tensor);

/// Errors: kInvalidArgument, which names file and tensor, if libtorch has no such type.
at::ScalarType tensor_type(StoredType stored, const std::string& name, const std::string& file);

}  // namespace lockstep::inline internal
