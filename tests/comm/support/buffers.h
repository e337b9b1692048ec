#pragma once
// Where the conformance suite keeps its data, and how it looks at results.

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "lockstep/comm/process_group.h"
#include "tests/comm/support/values.h"

namespace lockstep::testing {

/// Where a rank keeps the data of a call.
enum class Where { kOwn, kUser, kMixed };
inline constexpr Where kWheres[] = {Where::kOwn, Where::kUser, Where::kMixed};

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

/// Checks elements [0, count) of `got` against element(index, bytes): all of a small buffer; of a
/// large one both ends and every 61st, a number that meets every lane and every slice.
template <class Element>
void require_elements(const std::byte* got, DType dtype, int64_t count, const Element& element,
                      const std::string& what) {
  const int64_t size = size_of(dtype);
  constexpr int64_t kEnd = 128;
  for (int64_t i = 0; i < count; i += i < kEnd || i + kEnd >= count ? 1 : 61) {
    std::byte want[16];
    element(i, want);
    if (std::memcmp(got + i * size, want, static_cast<size_t>(size)) == 0) continue;
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
