#include "lockstep/tensor/device/dtype.h"

#include <fmt/format.h>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

DType to_dtype(c10::ScalarType type) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (to_scalar_type(dtype) == type) return dtype;
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("element type {} cannot travel between ranks; allowed: bool, uint8, int8, "
                  "int16, int32, int64, float16, bfloat16, float32, float64, complex64, "
                  "complex128",
                  c10::toString(type)));
}

c10::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return c10::ScalarType::Byte;
    case DType::kInt8:
      return c10::ScalarType::Char;
    case DType::kInt16:
      return c10::ScalarType::Short;
    case DType::kInt32:
      return c10::ScalarType::Int;
    case DType::kInt64:
      return c10::ScalarType::Long;
    case DType::kFloat16:
      return c10::ScalarType::Half;
    case DType::kBFloat16:
      return c10::ScalarType::BFloat16;
    case DType::kFloat32:
      return c10::ScalarType::Float;
    case DType::kFloat64:
      return c10::ScalarType::Double;
    case DType::kBool:
      return c10::ScalarType::Bool;
    case DType::kComplex64:
      return c10::ScalarType::ComplexFloat;
    case DType::kComplex128:
      return c10::ScalarType::ComplexDouble;
  }
  return c10::ScalarType::Undefined;
}

}  // namespace lockstep::inline internal
