#pragma once
// Element types and reductions of collectives.

#include <cstdint>
#include <string_view>

namespace lockstep {

enum class DType : uint8_t { kUint8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64 };
inline constexpr int kNumDTypes = 7;

/// kAvg divides the sum by the number of ranks once, at the end; integers round toward zero.
/// float16 and bfloat16 are added in float32 and rounded once per addition of the tree.
enum class ReduceOp : uint8_t { kSum, kAvg, kMin, kMax };

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 1;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

/// "float32".
std::string_view to_string(DType dtype);
/// "sum".
std::string_view to_string(ReduceOp op);

}  // namespace lockstep
