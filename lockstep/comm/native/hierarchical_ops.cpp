// The collectives of the hierarchical group. All have one form: rounds of bounded size. In each,
// data comes within reach of the host's carriers (it is there already, or is copied to staging
// memory). The carriers exchange it with other hosts, and the results are copied to their places.

#include <algorithm>

#include "lockstep/comm/bytes.h"
#include "lockstep/comm/native/hierarchical_group.h"
#include "lockstep/comm/native/recursive_doubling.h"

namespace lockstep::inline internal {

OpHeader HierarchicalGroup::next_header(OpKind kind, int64_t count, DType dtype, ReduceOp op,
                                        int root) {
  OpHeader header = header_of(kind, count, dtype, op, root);
  header.sequence = ++sequence_;
  local_.shm().tell_as(sequence_);
  detection_.start_waiting();
  return header;
}

HierarchicalGroup::Call HierarchicalGroup::begin(const OpHeader& header, const void* data,
                                                 int64_t bytes, int64_t result_bytes,
                                                 const Waiting& waiting) {
  Call call{header,
            waiting,
            tcp::choose(result_bytes, plan_.num_hosts(), plan_.slices),
            Numbering(plan_.size),
            StepContext{plan_, own_piece_sum_, links_, scratch_, header, plan_.local},
            local_.enter(header, data, bytes, waiting)};
  if (carries(call)) link(header, waiting.deadline);
  return call;
}

/// Peers on this host may access this rank's data until all are done.
void HierarchicalGroup::end(const Call& call) {
  if (!call.staged()) local_.sync(call.waiting);
  local_.finish();
}

bool HierarchicalGroup::carries(const Call& call) const {
  return plan_.local < call.choice.slices;
}

Span HierarchicalGroup::slice_of(const Call& call, int64_t count) const {
  return part_of({0, count}, plan_.local, call.choice.slices);
}

void HierarchicalGroup::run(Call& call, HierarchicalStep& step) {
  step.run(call.waiting.deadline, spin_of(call.waiting));
}

tcp::Pairs HierarchicalGroup::pairs_of(int64_t bytes) const {
  return plan_.pairs ? tcp::choose_pairs(bytes, plan_.num_hosts()) : tcp::Pairs::kNone;
}

void HierarchicalGroup::run_pairs(Call& call, const Bases& ins, const Bases& outs, int64_t count) {
  RecursiveDoubling(call.context, call.numbering)
      .run(ins, outs, slice_of(call, count), pairs_of(count * call.element_bytes()),
           call.waiting.deadline, spin_of(call.waiting));
}

void HierarchicalGroup::barrier(const Waiting& waiting) {
  guarded([&] {
    const auto header = next_header(OpKind::kBarrier, 0, DType::kUint8, ReduceOp::kSum, 0);
    Call call = begin(header, nullptr, 0, 0, waiting);
    if (carries(call) && pairs_of(0) != tcp::Pairs::kNone) {
      run_pairs(call, {}, {}, 0);
    } else if (carries(call)) {
      HierarchicalStep step(call.context, call.numbering);
      for (int host = 0; host < plan_.num_hosts(); ++host) {
        if (host == plan_.host) continue;
        step.send(host, nullptr, {});
        step.receive(host, {}, {});
      }
      run(call, step);
    }
    local_.sync(waiting);
    local_.finish();
  });
}

std::shared_ptr<SharedBuffer> HierarchicalGroup::allocate(int64_t bytes, const Waiting& waiting) {
  std::shared_ptr<SharedBuffer> buffer;
  guarded([&] {
    const auto header = next_header(OpKind::kAllocate, bytes, DType::kUint8, ReduceOp::kSum, 0);
    std::optional<Error> failure;  // of this host, the same on all its ranks
    try {
      buffer = local_.shm().allocate(bytes, waiting);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      failure = error;
    }
    const bool others = all_hosts_succeeded(header, !failure, waiting);
    if (failure) throw Error(*failure);
    if (!others) {
      throw Error(ErrorCode::kUnavailable,
                  "allocate: a rank on another host has no memory; see its log");
    }
  });
  return buffer;
}

bool HierarchicalGroup::all_hosts_succeeded(const OpHeader& header, bool here,
                                            const Waiting& waiting) {
  std::vector<std::byte> good(static_cast<size_t>(plan_.num_hosts()), std::byte{here});
  Call call{header,
            waiting,
            tcp::Choice{},
            Numbering(plan_.size),
            StepContext{plan_, own_piece_sum_, links_, scratch_, header, plan_.local},
            {}};
  if (carries(call)) {
    link(header, waiting.deadline);
    HierarchicalStep step(call.context, call.numbering);
    const auto mine = static_cast<size_t>(plan_.host);
    for (int host = 0; host < plan_.num_hosts(); ++host) {
      if (host == plan_.host) continue;
      std::byte* const to = &good[static_cast<size_t>(host)];
      step.send(host, &good[mine], {0, 1});
      step.receive(host, std::span(&to, 1), {0, 1});
    }
    run(call, step);
  }
  auto all = std::all_of(good.begin(), good.end(), [](std::byte b) { return b != std::byte{0}; });
  if (!local_.alone()) local_.shm().broadcast(&all, 1, DType::kUint8, 0, waiting);
  return all;
}

void HierarchicalGroup::broadcast(void* data, int64_t count, DType dtype, int root,
                                  const Waiting& waiting) {
  guarded([&] {
    const int64_t bytes = count * size_of(dtype);
    Call call = begin(next_header(OpKind::kBroadcast, count, dtype, ReduceOp::kSum, root), data,
                      bytes, bytes, waiting);
    if (plan_.num_hosts() == 2) call.choice.one_step = true;  // no third host to share the sending
    do_broadcast(call, static_cast<std::byte*>(data), count, root);
    end(call);
  });
}

/// The root's host scatters round k to the other hosts, which spread round k - 1 among themselves.
void HierarchicalGroup::do_broadcast(Call& call, std::byte* data, int64_t count, int root) {
  if (call.staged()) local_.prepare(count * call.element_bytes(), call.waiting);
  const int64_t size = call.element_bytes();
  const auto rounds = tcp::rounds_of(count, size);
  const int root_host = plan_.topology.host_of[static_cast<size_t>(root)];
  const bool at_root = plan_.host == root_host;
  const int64_t lag = call.choice.one_step ? 0 : 1;
  const auto root_data = [&](int64_t round) {
    return call.staged()
               ? local_.slot(local_of(root), round)
               : call.bases[static_cast<size_t>(local_of(root))] + rounds[round].begin * size;
  };
  const auto outs_of = [&](int64_t round) {
    return call.staged() ? Bases{local_.result(round)}
                         : shifted(call.bases, rounds[round].begin * size);
  };
  for (int64_t k = 0; k < rounds.size() + lag; ++k) {
    const bool scatters = k < rounds.size();
    const auto span = scatters ? rounds[k] : Span{};
    if (call.staged()) {
      if (spec_.rank == root && scatters)
        copy_bytes(root_data(k), data + span.begin * size, span.size() * size);
      local_.sync(call.waiting);
    }
    if (carries(call)) {
      HierarchicalStep step(call.context, call.numbering);
      if (scatters) {
        add_scatter(call, step, at_root ? root_data(k) : nullptr, at_root ? Bases{} : outs_of(k),
                    span.size(), root_host);
      }
      if (lag == 1 && k > 0 && !at_root)
        add_spread(call, step, outs_of(k - 1), rounds[k - 1].size(), root_host, 0);
      run(call, step);
    }
    if (call.staged()) local_.sync(call.waiting);
    if (at_root && scatters && spec_.rank != root) {
      copy_bytes(data + span.begin * size, root_data(k), span.size() * size);
    } else if (!at_root && call.staged() && k >= lag) {
      copy_bytes(data + rounds[k - lag].begin * size, local_.result(k - lag),
                 rounds[k - lag].size() * size);
    }
  }
}

void HierarchicalGroup::add_scatter(Call& call, HierarchicalStep& step, std::byte* from,
                                    const Bases& outs, int64_t count, int root_host) {
  const auto slice = slice_of(call, count);
  const auto piece = [&](int host) {
    const int owner = host > root_host ? host - 1 : host;
    return call.choice.one_step ? slice : part_of(slice, owner, plan_.num_hosts() - 1);
  };
  if (plan_.host != root_host) return step.receive(root_host, outs, piece(plan_.host));
  for (int host = 0; host < plan_.num_hosts(); ++host) {
    if (host != root_host) step.send(host, from, piece(host));
  }
}

void HierarchicalGroup::all_gather(const void* in, void* out, int64_t count, DType dtype,
                                   const Waiting& waiting) {
  guarded([&] {
    const int64_t bytes = count * size_of(dtype);
    Call call = begin(next_header(OpKind::kAllGather, count, dtype, ReduceOp::kSum, 0), in, bytes,
                      bytes * plan_.size, waiting);
    do_all_gather(call, static_cast<const std::byte*>(in), static_cast<std::byte*>(out), count);
    end(call);
  });
}

void HierarchicalGroup::do_all_gather(Call& call, const std::byte* in, std::byte* out,
                                      int64_t count) {
  local_.prepare(count * call.element_bytes() * plan_.size, call.waiting);
  const int64_t size = call.element_bytes();
  const auto rounds = tcp::rounds_of(count, size * plan_.size);
  for (int64_t k = 0; k < rounds.size(); ++k) {
    const int64_t begin = rounds[k].begin * size;
    const int64_t bytes = rounds[k].size() * size;
    const auto final_place = [&](int rank) { return out + rank * count * size + begin; };
    const auto source = [&](int rank) {
      const auto local = static_cast<size_t>(local_of(rank));
      return call.staged() ? local_.slot(local_of(rank), k) : call.bases[local] + begin;
    };
    const auto place = [&](int rank) {
      return local_.alone() ? final_place(rank) : local_.result(k) + rank * bytes;
    };
    if (call.staged()) copy_bytes(local_.own_slot(k), in + begin, bytes);
    local_.sync(call.waiting);
    if (carries(call)) {
      HierarchicalStep step(call.context, call.numbering);
      const auto slice = slice_of(call, rounds[k].size());
      for (int i = 1; i < plan_.num_hosts(); ++i) {
        const int host = (plan_.host + i) % plan_.num_hosts();
        for (const int rank : plan_.ranks_of(plan_.host)) step.send(host, source(rank), slice);
        for (const int rank : plan_.ranks_of(host)) {
          std::byte* const to = place(rank);
          step.receive(host, std::span(&to, 1), slice);
        }
      }
      run(call, step);
    }
    local_.sync(call.waiting);
    for (int rank = 0; rank < plan_.size; ++rank) {
      const bool here = plan_.topology.host_of[static_cast<size_t>(rank)] == plan_.host;
      copy_bytes(final_place(rank), here ? source(rank) : place(rank), bytes);
    }
  }
}

}  // namespace lockstep::inline internal
