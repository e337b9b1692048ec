#include "lockstep/tensor/dtype.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep {

DType to_dtype(c10::ScalarType type) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (to_scalar_type(dtype) == type) return dtype;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("element type {} cannot travel between ranks; allowed: uint8, int32, "
                          "int64, float16, bfloat16, float32, float64",
                          c10::toString(type)));
}

c10::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return c10::ScalarType::Byte;
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
  }
  return c10::ScalarType::Undefined;
}

}  // namespace lockstep
