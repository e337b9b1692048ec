#pragma once
// What a collective's arguments must be, checked before anything is sent. `call` is its name. All
// throw kInvalidArgument.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/types.h"

namespace lockstep {

Error invalid(const std::string& what);

/// `what`, a rank, must be in [0, size).
void check_rank(const char* call, const char* what, int rank, int size);
/// `parts` * `count` elements must have a size in bytes, and a place unless there are none.
void check_buffer(const char* call, const void* data, int64_t count, DType dtype, int parts = 1);
/// One count a rank, and a buffer for all of them. Returns their sum.
int64_t check_counts(const char* call, const char* what, std::span<const int64_t> counts, int size,
                     const void* data, DType dtype);
/// `device`: whose memory the call takes where it lies; empty: none's.
void check_memory(std::string_view call, const CollectiveOptions& options,
                  const std::string& device);
void check_op(const char* call, DType dtype, ReduceOp op, const CollectiveOptions& options);

}  // namespace lockstep
