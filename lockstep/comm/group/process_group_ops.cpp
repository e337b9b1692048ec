// The collectives of ProcessGroup: argument checks, and the calls of the back end.

#include <fmt/format.h>

#include <utility>

#include "lockstep/comm/arguments.h"
#include "lockstep/comm/group/group_core.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/scaled.h"
#include "lockstep/process_group.h"

namespace lockstep {
namespace {

void check_peer(const char* call, const char* what, int peer, const GroupSpec& spec) {
  check_rank(call, what, peer, spec.size);
  if (peer == spec.rank) throw invalid(fmt::format("{}: {} is this rank itself", call, what));
}

Work start_exchange(GroupCore& core, Exchange exchange, const void* in, void* out,
                    const CollectiveOptions& options, CallSite site) {
  check_memory(to_string(exchange.kind), options, core.device());
  const int64_t bytes = exchange.bytes();                    // read before the move
  const char* const call = to_string(exchange.kind).data();  // a literal
  return core.collective(
      call, bytes, options, site,
      [exchange = std::move(exchange), in, out](GroupImpl& impl, const Waiting& waiting) {
        impl.exchange(exchange, in, out, waiting);
      });
}

}  // namespace

bool Work::done() const {
  return !state_ || state_->done();
}

void Work::wait() {
  if (state_) state_->wait();
}

Work Work::then(std::function<void()> last) && {
  if (state_) {
    state_->then(std::move(last));
  } else {
    last();
  }
  return std::move(*this);
}

Work ProcessGroup::all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                              const CollectiveOptions& options, CallSite site) {
  check_memory("all_reduce", options, device());
  check_buffer("all_reduce", data, count, dtype);
  check_op("all_reduce", dtype, op, options);
  const double factor = options.factor;
  return core_->collective("all_reduce", count * size_of(dtype), options, site,
                           [=](GroupImpl& impl, const Waiting& waiting) {
                             if (factor != 1) scale(data, data, count, dtype, factor);
                             impl.all_reduce(data, count, dtype, op, waiting);
                           });
}

Work ProcessGroup::broadcast(void* data, int64_t count, DType dtype, int root,
                             const CollectiveOptions& options, CallSite site) {
  check_memory("broadcast", options, device());
  check_buffer("broadcast", data, count, dtype);
  check_rank("broadcast", "root", root, size());
  return core_->collective("broadcast", count * size_of(dtype), options, site,
                           [=](GroupImpl& impl, const Waiting& waiting) {
                             impl.broadcast(data, count, dtype, root, waiting);
                           });
}

Work ProcessGroup::all_gather(const void* in, void* out, int64_t count, DType dtype,
                              const CollectiveOptions& options, CallSite site) {
  check_memory("all_gather", options, device());
  check_buffer("all_gather", in, count, dtype, size());
  check_buffer("all_gather", out, count, dtype, size());
  return core_->collective("all_gather", count * size_of(dtype) * size(), options, site,
                           [=](GroupImpl& impl, const Waiting& waiting) {
                             impl.all_gather(in, out, count, dtype, waiting);
                           });
}

Work ProcessGroup::reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                                  ReduceOp op, const CollectiveOptions& options, CallSite site) {
  check_memory("reduce_scatter", options, device());
  check_buffer("reduce_scatter", in, count, dtype, size());
  check_buffer("reduce_scatter", out, count, dtype, size());
  check_op("reduce_scatter", dtype, op, options);
  const double factor = options.factor;
  return core_->collective("reduce_scatter", count * size_of(dtype) * size(), options, site,
                           [=, all = count * size()](GroupImpl& impl, const Waiting& waiting) {
                             const Scaled scaled(in, all, dtype, factor);
                             impl.reduce_scatter(scaled.data(), out, count, dtype, op, waiting);
                           });
}

Work ProcessGroup::reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
                          const CollectiveOptions& options, CallSite site) {
  check_memory("reduce", options, device());
  check_buffer("reduce", data, count, dtype);
  check_rank("reduce", "root", root, size());
  check_op("reduce", dtype, op, options);
  const bool copies = options.factor != 1 && rank() != root;
  return core_->collective("reduce", count * size_of(dtype), options, site,
                           [=, factor = options.factor](GroupImpl& impl, const Waiting& waiting) {
                             if (!copies && factor != 1) scale(data, data, count, dtype, factor);
                             // Data of ranks other than root stays unchanged, although the
                             // interface takes a mutable pointer.
                             const Scaled scaled(data, count, dtype, copies ? factor : 1);
                             impl.reduce(const_cast<void*>(scaled.data()), count, dtype, op, root,
                                         waiting);
                           });
}

Work ProcessGroup::gather(const void* in, void* out, int64_t count, DType dtype, int root,
                          const CollectiveOptions& options, CallSite site) {
  check_buffer("gather", in, count, dtype, size());
  check_rank("gather", "root", root, size());
  if (rank() == root) check_buffer("gather", out, count, dtype, size());
  return start_exchange(*core_, gather_exchange(rank(), size(), count, dtype, root), in, out,
                        options, site);
}

Work ProcessGroup::scatter(const void* in, void* out, int64_t count, DType dtype, int root,
                           const CollectiveOptions& options, CallSite site) {
  check_buffer("scatter", out, count, dtype, size());
  check_rank("scatter", "root", root, size());
  if (rank() == root) check_buffer("scatter", in, count, dtype, size());
  return start_exchange(*core_, scatter_exchange(rank(), size(), count, dtype, root), in, out,
                        options, site);
}

Work ProcessGroup::all_to_all(const void* in, void* out, int64_t count, DType dtype,
                              const CollectiveOptions& options, CallSite site) {
  check_buffer("all_to_all", in, count, dtype, size());
  check_buffer("all_to_all", out, count, dtype, size());
  return start_exchange(*core_, all_to_all_exchange(rank(), size(), count, dtype), in, out, options,
                        site);
}

Work ProcessGroup::all_gatherv(const void* in, void* out, std::span<const int64_t> counts,
                               DType dtype, const CollectiveOptions& options, CallSite site) {
  check_counts("all_gatherv", "counts", counts, size(), out, dtype);
  check_buffer("all_gatherv", in, counts[static_cast<size_t>(rank())], dtype);
  return start_exchange(*core_, all_gatherv_exchange(rank(), counts, dtype), in, out, options,
                        site);
}

Work ProcessGroup::all_to_allv(const void* in, std::span<const int64_t> send_counts, void* out,
                               std::span<const int64_t> receive_counts, DType dtype,
                               const CollectiveOptions& options, CallSite site) {
  check_counts("all_to_allv", "send_counts", send_counts, size(), in, dtype);
  check_counts("all_to_allv", "receive_counts", receive_counts, size(), out, dtype);
  const auto own = static_cast<size_t>(rank());
  if (send_counts[own] != receive_counts[own]) {
    throw invalid(fmt::format("all_to_allv: this rank sends {} elements to itself and expects {}",
                              send_counts[own], receive_counts[own]));
  }
  return start_exchange(*core_, all_to_allv_exchange(send_counts, receive_counts, dtype), in, out,
                        options, site);
}

Work ProcessGroup::send(const void* data, int64_t count, DType dtype, int destination, int tag,
                        CallSite site) {
  check_buffer("send", data, count, dtype);
  check_peer("send", "destination", destination, core_->spec());
  return core_->send(data, {.count = count, .tag = tag, .dtype = dtype}, destination, site);
}

Work ProcessGroup::recv(void* data, int64_t count, DType dtype, int source, int tag,
                        CallSite site) {
  check_buffer("recv", data, count, dtype);
  check_peer("recv", "source", source, core_->spec());
  return core_->recv(data, {.count = count, .tag = tag, .dtype = dtype}, source, site);
}

}  // namespace lockstep
