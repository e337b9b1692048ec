#pragma once
// The data of the conformance suite, and its checks of results.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/values.h"

namespace lockstep::testing {

/// The memory of a rank's data in a call.
enum class Where { kOwn, kUser, kMixed };
inline std::vector<Where> wheres() {
  if (!promises.shared_memory) return {Where::kUser};
  return {Where::kOwn, Where::kUser, Where::kMixed};
}

inline std::string to_string(Where where) {
  return where == Where::kOwn ? "own memory" : where == Where::kUser ? "user memory" : "mixed";
}

/// `bytes` at a place that starts unaligned by `skew` bytes.
class Buffer {
 public:
  Buffer(ProcessGroup& group, Where where, int64_t bytes, int64_t skew = 0)
      : user_(static_cast<size_t>(bytes + skew)) {
    if (where != Where::kUser) shared_ = group.allocate(bytes + skew);
    const bool own = where == Where::kOwn || (where == Where::kMixed && group.rank() % 2 == 0);
    data_ = (own ? static_cast<std::byte*>(shared_->data()) : user_.data()) + skew;
  }
  std::byte* data() const { return data_; }

 private:
  Bytes user_;
  std::shared_ptr<SharedBuffer> shared_;
  std::byte* data_;
};

inline CollectiveOptions options_for(ReduceOp op, int rank, bool async = false) {
  return {.async = async, .factor = op == ReduceOp::kPremulSum ? factor_of(rank) : 1};
}

inline void fill(std::byte* to, DType dtype, int64_t count, int rank, uint64_t seed) {
  const Bytes values = make_values(dtype, count, rank, seed);
  if (count > 0) std::memcpy(to, values.data(), values.size());
}

/// The types and reductions to test; sanitized, a few of them.
inline std::vector<DType> tested_dtypes() {
  std::vector<DType> tested;
  for (const DType dtype : all_dtypes()) {
    if (promises.carries != nullptr && !promises.carries(dtype)) continue;
    if (!kSanitized || dtype == DType::kInt16 || dtype == DType::kBFloat16 ||
        dtype == DType::kFloat32 || dtype == DType::kComplex128) {
      tested.push_back(dtype);
    }
  }
  return tested;
}

inline bool has_op(DType dtype, ReduceOp op) {
  const auto ops = ops_of(dtype);
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// True if the bits are equal or, without a fixed order, the values are close enough.
inline bool as_promised(DType dtype, const std::byte* got, const std::byte* want) {
  const auto size = static_cast<size_t>(size_of(dtype));
  if (std::memcmp(got, want, size) == 0) return true;
  if (promises.fixed_order) return false;
  const Parts parts = parts_of(dtype);
  for (int64_t i = 0; i < parts.each; ++i) {
    const double one = element_as_double(parts.dtype, Bytes(got, got + size), i);
    const double other = element_as_double(parts.dtype, Bytes(want, want + size), i);
    if (!std::isfinite(one) && !std::isfinite(other)) continue;
    if (!(std::fabs(one - other) <= tolerance_of(dtype, other))) return false;
  }
  return true;
}

/// Checks elements [0, count) of `got` against element(index, bytes). Of a small buffer it checks
/// all; of a large one both ends and every 61st, a number that covers every lane and every slice.
template <class Element>
void require_elements(const std::byte* got, DType dtype, int64_t count, const Element& element,
                      const std::string& what) {
  const int64_t size = size_of(dtype);
  constexpr int64_t kEnd = 128;
  for (int64_t i = 0; i < count; i += i < kEnd || i + kEnd >= count ? 1 : 61) {
    std::byte want[16];
    element(i, want);
    if (as_promised(dtype, got + i * size, want)) continue;
    throw std::runtime_error(
        fmt::format("{}: element {} is {}, not {}", what, i,
                    element_as_double(dtype, Bytes(got + i * size, got + (i + 1) * size), 0),
                    element_as_double(dtype, Bytes(want, want + size), 0)));
  }
}

/// Element `index` of make_values().
inline void value_element(DType dtype, int rank, uint64_t seed, int64_t index, std::byte* out) {
  reference_element(dtype, ReduceOp::kMax, 1, seed + static_cast<uint64_t>(rank), index, out);
}

}  // namespace lockstep::testing
