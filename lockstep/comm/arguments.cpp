#include "lockstep/comm/arguments.h"

#include <fmt/format.h>

#include <limits>

#include "lockstep/base/counted.h"
#include "lockstep/comm/kernels/element_types.h"

namespace lockstep::inline internal {

Error invalid(const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, what);
}

void check_rank(const char* call, const char* what, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw invalid(fmt::format("{}: {} is {}, must be in [0, {})", call, what, rank, size));
}

void check_buffer(const char* call, const void* data, int64_t count, DType dtype, int parts) {
  if (static_cast<int>(dtype) >= kNumDTypes) {
    throw invalid(fmt::format("{}: there is no dtype {}", call, static_cast<int>(dtype)));
  }
  if (count < 0 || count > std::numeric_limits<int64_t>::max() / size_of(dtype) / parts) {
    throw invalid(fmt::format("{}: count is {}", call, count));
  }
  if (count > 0 && data == nullptr) {
    throw invalid(fmt::format("{}: null pointer for {} elements", call, count));
  }
}

int64_t check_counts(const char* call, const char* what, std::span<const int64_t> counts, int size,
                     const void* data, DType dtype) {
  if (static_cast<int>(counts.size()) != size) {
    throw invalid(
        fmt::format("{}: {} {} for {}", call, counts.size(), what, counted(size, "rank")));
  }
  int64_t sum = 0;
  for (const int64_t count : counts) {
    if (count < 0 || count > std::numeric_limits<int64_t>::max() - sum) {
      throw invalid(fmt::format("{}: one of the {} is {}", call, what, count));
    }
    sum += count;
  }
  check_buffer(call, data, sum, dtype);
  return sum;
}

void check_memory(std::string_view call, const CollectiveOptions& options,
                  const std::string& device) {
  if (!options.on_device) return;
  if (device.empty()) throw invalid(fmt::format("{}: takes memory of the host only", call));
  if (options.factor != 1) {
    throw invalid(fmt::format("{}: factor {} is for memory of the host, not of {}", call,
                              options.factor, device));
  }
}

void check_op(const char* call, DType dtype, ReduceOp op, const CollectiveOptions& options) {
  if (static_cast<int>(op) >= kNumReduceOps) {
    throw invalid(fmt::format("{}: there is no reduction {}", call, static_cast<int>(op)));
  }
  if (!can_reduce(dtype, op)) {
    throw invalid(fmt::format("{}: {} has no {}; it has {}", call, to_string(dtype), to_string(op),
                              reductions_of(dtype)));
  }
  if (options.factor != 1 && op != ReduceOp::kPremulSum) {
    throw invalid(fmt::format("{}: factor {} is for premul_sum, the call is for {}", call,
                              options.factor, to_string(op)));
  }
}

}  // namespace lockstep::inline internal
