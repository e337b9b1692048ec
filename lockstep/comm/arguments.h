#pragma once
// Checks of a collective's arguments before anything is sent. `call` is the collective's name. All
// checks throw kInvalidArgument.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

Error invalid(const std::string& what);

/// The rank that `what` describes must be in [0, size).
void check_rank(const char* call, const char* what, int rank, int size);
/// `parts` * `count` elements must have a size in bytes, and `data` must not be null unless there
/// are none.
void check_buffer(const char* call, const void* data, int64_t count, DType dtype, int parts = 1);
/// There must be one count per rank, and a buffer for all elements. Returns their sum.
int64_t check_counts(const char* call, const char* what, std::span<const int64_t> counts, int size,
                     const void* data, DType dtype);
/// `device`: the device whose memory the call takes in place; empty: none.
void check_memory(std::string_view call, const CollectiveOptions& options,
                  const std::string& device);
void check_op(const char* call, DType dtype, ReduceOp op, const CollectiveOptions& options);

}  // namespace lockstep::inline internal
