#pragma once
// This header names the element types and reductions of collectives, and places of calls.
//
// Use:
//   const auto dtype = lockstep::DType::kBFloat16;
//   if (lockstep::can_reduce(dtype, lockstep::ReduceOp::kAvg)) {
//     std::vector<std::byte> data(static_cast<size_t>(1000 * lockstep::size_of(dtype)));
//     group.all_reduce(data.data(), 1000, dtype, lockstep::ReduceOp::kAvg).wait();
//   }
//
// Threads: any. Cost: a look at a table. Errors: none. An unknown
// type has size 0, and its name is "unknown".

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// kBool: one byte, 0 or 1. The complex types are pairs (real, imaginary) of float32 and float64.
enum class DType : uint8_t {
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kBool,
  kComplex64,
  kComplex128,
};

/// kAvg divides the sum by the number of ranks once, at the end; integers round toward zero.
/// kPremulSum sums after each rank has multiplied its values by CollectiveOptions::factor.
/// Integers wrap. float16 and bfloat16 are computed in float32 and rounded once per operation of
/// the tree. For bool, kSum is "or" and kProduct "and", so that the result is a bool.
enum class ReduceOp : uint8_t { kSum, kAvg, kMin, kMax, kProduct, kBand, kBor, kBxor, kPremulSum };

/// Bytes of an element.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kBool:
      return 1;
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kComplex64:
      return 8;
    case DType::kComplex128:
      return 16;
  }
  return 0;
}

/// The whole table, the same on every back end (and for c10d's own operations):
///
///              sum  avg  premul_sum  min  max  product  band  bor  bxor
///   bool       yes  -    -           yes  yes  yes      yes   yes  yes
///   integers   yes  yes  -           yes  yes  yes      yes   yes  yes
///   floating   yes  yes  yes         yes  yes  yes      -     -    -
///   complex    yes  yes  yes         -    -    -        -     -    -
///
/// Complex numbers have the linear reductions only: they are not ordered, and a product of pairs
/// would not be the same operation on their parts.
bool can_reduce(DType dtype, ReduceOp op);

/// For example "float32".
std::string_view to_string(DType dtype);
/// For example "sum".
std::string_view to_string(ReduceOp op);

// The place where a program calls an operation, for the flight recorder.

/// A place in the source, and the bucket of gradients that the call works on, if any.
///
/// Make it the last parameter of a function, with here() as its default: it is then the caller's
/// place, at the price of three registers. A function that calls for its own caller passes that
/// caller's place on. A function that calls on its own account leaves it out.
struct CallSite {
  const char* file = nullptr;  ///< As the compiler got it; valid as long as the program runs.
  uint32_t line = 0;           ///< 0: unknown.
  int32_t bucket = -1;         ///< -1: none.

  // std::source_location::current() does the same, but clang has it only from version 16 on.
  static constexpr CallSite here(const char* file = __builtin_FILE(),
                                 uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr CallSite of_bucket(int index) const { return {file, line, index}; }
};

}  // namespace lockstep
