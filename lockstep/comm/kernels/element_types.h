#pragma once
// Types of elements as back ends see them: their kinds, and other types in whose place they stand.

#include <cstdint>
#include <string>

#include "lockstep/types.h"

namespace lockstep::inline internal {

inline constexpr int kNumDTypes = 12;
inline constexpr int kNumReduceOps = 9;

/// The kind of a type; it determines the allowed reductions.
enum class DTypeKind : uint8_t { kBool, kInteger, kFloating, kComplex };
DTypeKind kind_of(DType dtype);

/// The reductions of `dtype`, for messages: "sum, avg, premul_sum".
std::string reductions_of(DType dtype);

/// Substitute elements for back ends without bool and complex: the reductions of complex numbers
/// are linear, so they are those of their parts.
struct Parts {
  DType dtype;
  int64_t each;  ///< Number of parts in an element.
};
Parts parts_of(DType dtype);
/// The reduction of these parts: of 0 and 1 the larger is "or" and the smaller is "and".
ReduceOp op_on_parts(DType dtype, ReduceOp op);

}  // namespace lockstep::inline internal
