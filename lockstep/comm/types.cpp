#include "lockstep/types.h"

#include "lockstep/comm/kernels/element_types.h"

namespace lockstep {

DTypeKind internal::kind_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return DTypeKind::kBool;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return DTypeKind::kFloating;
    case DType::kComplex64:
    case DType::kComplex128:
      return DTypeKind::kComplex;
    default:
      return DTypeKind::kInteger;
  }
}

bool can_reduce(DType dtype, ReduceOp op) {
  const DTypeKind kind = kind_of(dtype);
  switch (op) {
    case ReduceOp::kSum:
      return true;
    case ReduceOp::kAvg:
      return kind != DTypeKind::kBool;
    case ReduceOp::kPremulSum:
      return kind == DTypeKind::kFloating || kind == DTypeKind::kComplex;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
    case ReduceOp::kProduct:
      return kind != DTypeKind::kComplex;
    case ReduceOp::kBand:
    case ReduceOp::kBor:
    case ReduceOp::kBxor:
      return kind == DTypeKind::kBool || kind == DTypeKind::kInteger;
  }
  return false;
}

std::string internal::reductions_of(DType dtype) {
  std::string names;
  for (int i = 0; i < kNumReduceOps; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    if (!can_reduce(dtype, op)) continue;
    if (!names.empty()) names += ", ";
    names += to_string(op);
  }
  return names;
}

Parts internal::parts_of(DType dtype) {
  if (dtype == DType::kBool) return {DType::kUint8, 1};
  if (dtype == DType::kComplex64) return {DType::kFloat32, 2};
  if (dtype == DType::kComplex128) return {DType::kFloat64, 2};
  return {dtype, 1};
}

ReduceOp internal::op_on_parts(DType dtype, ReduceOp op) {
  if (dtype == DType::kBool && op == ReduceOp::kSum) return ReduceOp::kMax;
  if (dtype == DType::kBool && op == ReduceOp::kProduct) return ReduceOp::kMin;
  return op;
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kBool:
      return "bool";
    case DType::kComplex64:
      return "complex64";
    case DType::kComplex128:
      return "complex128";
  }
  return "unknown";
}

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAvg:
      return "avg";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kBand:
      return "band";
    case ReduceOp::kBor:
      return "bor";
    case ReduceOp::kBxor:
      return "bxor";
    case ReduceOp::kPremulSum:
      return "premul_sum";
  }
  return "unknown";
}

}  // namespace lockstep
