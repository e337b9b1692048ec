// The collectives of ProcessGroup on many buffers at once: check the arguments, hand over.

#include <vector>

#include "lockstep/comm/arguments.h"
#include "lockstep/comm/coalesced.h"
#include "lockstep/comm/group_core.h"
#include "lockstep/process_group.h"

namespace lockstep {

Work ProcessGroup::all_reduce_coalesced(std::span<const Buffer> buffers, DType dtype, ReduceOp op,
                                        const CollectiveOptions& options, CallSite site) {
  check_memory("all_reduce_coalesced", options, "");
  int64_t bytes = 0;
  for (const auto& buffer : buffers) {
    check_buffer("all_reduce_coalesced", buffer.data, buffer.count, dtype);
    bytes += buffer.count * size_of(dtype);
  }
  check_op("all_reduce_coalesced", dtype, op, options);
  return core_->collective(
      "all_reduce_coalesced", bytes, options, site,
      [copies = std::vector<Buffer>(buffers.begin(), buffers.end()), dtype, op,
       factor = options.factor, &spec = core_->spec()](GroupImpl& impl, const Waiting& waiting) {
        lockstep::all_reduce_coalesced(impl, spec, copies, dtype, op, factor, waiting);
      });
}

Work ProcessGroup::all_gather_coalesced(std::span<const BufferPair> pairs, DType dtype,
                                        const CollectiveOptions& options, CallSite site) {
  check_memory("all_gather_coalesced", options, "");
  int64_t bytes = 0;
  for (const auto& pair : pairs) {
    check_buffer("all_gather_coalesced", pair.in, pair.count, dtype, size());
    check_buffer("all_gather_coalesced", pair.out, pair.count, dtype, size());
    bytes += pair.count * size_of(dtype) * size();
  }
  return core_->collective("all_gather_coalesced", bytes, options, site,
                           [copies = std::vector<BufferPair>(pairs.begin(), pairs.end()), dtype,
                            &spec = core_->spec()](GroupImpl& impl, const Waiting& waiting) {
                             lockstep::all_gather_coalesced(impl, spec, copies, dtype, waiting);
                           });
}

Work ProcessGroup::reduce_scatter_coalesced(std::span<const BufferPair> pairs, DType dtype,
                                            ReduceOp op, const CollectiveOptions& options,
                                            CallSite site) {
  check_memory("reduce_scatter_coalesced", options, "");
  int64_t bytes = 0;
  for (const auto& pair : pairs) {
    check_buffer("reduce_scatter_coalesced", pair.in, pair.count, dtype, size());
    check_buffer("reduce_scatter_coalesced", pair.out, pair.count, dtype, size());
    bytes += pair.count * size_of(dtype) * size();
  }
  check_op("reduce_scatter_coalesced", dtype, op, options);
  return core_->collective(
      "reduce_scatter_coalesced", bytes, options, site,
      [copies = std::vector<BufferPair>(pairs.begin(), pairs.end()), dtype, op,
       factor = options.factor, &spec = core_->spec()](GroupImpl& impl, const Waiting& waiting) {
        lockstep::reduce_scatter_coalesced(impl, spec, copies, dtype, op, factor, waiting);
      });
}

}  // namespace lockstep
