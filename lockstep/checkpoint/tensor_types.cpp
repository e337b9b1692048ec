#include "lockstep/checkpoint/tensor_types.h"

#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>

#include <array>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

struct TypePair {
  StoredType stored;
  at::ScalarType tensor;
};

constexpr std::array<TypePair, 11> kTypePairs = {{
    {StoredType::kBool, at::kBool},
    {StoredType::kU8, at::kByte},
    {StoredType::kI8, at::kChar},
    {StoredType::kI16, at::kShort},
    {StoredType::kF16, at::kHalf},
    {StoredType::kBf16, at::kBFloat16},
    {StoredType::kI32, at::kInt},
    {StoredType::kF32, at::kFloat},
    {StoredType::kC64, at::kComplexFloat},
    {StoredType::kF64, at::kDouble},
    {StoredType::kI64, at::kLong},
}};

void check_dense(const std::string& name, const at::Tensor& tensor) {
  if (tensor.layout() == at::kStrided) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("tensor '{}' is not dense, and files hold dense tensors only: register "
                          "to_dense() of it, or keep it in a member that is no buffer",
                          name));
}

}  // namespace

void check_fillable(const std::string& name, const at::Tensor& tensor) {
  check_dense(name, tensor);
  if (at::has_internal_overlap(tensor) != at::MemOverlap::Yes) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("tensor '{}' of the network has elements that share memory, as after "
                          "expand(), and cannot be filled: contiguous() it before register_buffer",
                          name));
}

StoredType stored_type(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("tensor '{}' is undefined", name));
  }
  check_dense(name, tensor);
  for (const TypePair& pair : kTypePairs) {
    if (pair.tensor == tensor.scalar_type()) return pair.stored;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("tensor '{}': dtype {} has no place in a safetensors file", name,
                          at::toString(tensor.scalar_type())));
}

at::ScalarType tensor_type(StoredType stored, const std::string& name, const std::string& file) {
  for (const TypePair& pair : kTypePairs) {
    if (pair.stored == stored) return pair.tensor;
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: tensor '{}': libtorch has no dtype for {}", file, name, to_string(stored)));
}

}  // namespace lockstep::inline internal
