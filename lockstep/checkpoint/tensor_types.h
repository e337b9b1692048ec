#pragma once
// Private to the layer: libtorch's element types and those of files.

#include <ATen/core/Tensor.h>

#include <string>

#include "lockstep/checkpoint/safetensors_format.h"

namespace lockstep {

/// Errors: kInvalidArgument naming the tensor when it is undefined or of a type that files do not
/// have.
StoredType stored_type(const std::string& name, const at::Tensor& tensor);

/// Errors: kInvalidArgument naming file and tensor when libtorch has no such type.
at::ScalarType tensor_type(StoredType stored, const std::string& name, const std::string& file);

}  // namespace lockstep
