// The sums of the hierarchical group: all_reduce, reduce, reduce_scatter. See hierarchical_ops.cpp
// for the form that all collectives share.

#include <algorithm>

#include "lockstep/base/rounding.h"
#include "lockstep/comm/bytes.h"
#include "lockstep/comm/native/hierarchical_group.h"

namespace lockstep::inline internal {

void HierarchicalGroup::all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                                   const Waiting& waiting) {
  guarded([&] {
    const int64_t bytes = count * size_of(dtype);
    Call call =
        begin(next_header(OpKind::kAllReduce, count, dtype, op, 0), data, bytes, bytes, waiting);
    do_all_reduce(call, static_cast<std::byte*>(data), count);
    end(call);
  });
}

/// The rounds of an all_reduce, divided into exchanges. One exchange runs all rounds on memory that
/// the host's carriers reach. Otherwise each runs as many as fit the staging memory. The frames
/// and their order are the same in both cases, because other hosts may differ.
struct HierarchicalGroup::Flow {
  tcp::Rounds rounds;
  int64_t per_exchange;
  int64_t element_bytes;

  int64_t num_exchanges() const { return divide_up(rounds.size(), per_exchange); }
  /// The first round of an exchange.
  int64_t first(int64_t exchange) const { return exchange * per_exchange; }
  int64_t last(int64_t exchange) const {
    return std::min(first(exchange) + per_exchange, rounds.size()) - 1;
  }
  int64_t begin(int64_t exchange) const { return rounds[first(exchange)].begin * element_bytes; }
  int64_t bytes(int64_t exchange) const {
    return rounds[last(exchange)].end * element_bytes - begin(exchange);
  }
  int64_t exchange_of(int64_t round) const { return round / per_exchange; }
};

void HierarchicalGroup::do_all_reduce(Call& call, std::byte* data, int64_t count) {
  const int64_t size = call.element_bytes();
  const auto rounds = tcp::flowing_rounds_of(count, size, plan_.num_hosts(), call.choice.slices);
  const int64_t fitting = std::max<int64_t>(tcp::kRoundBytes / (rounds.per_round * size), 1);
  const Flow flow{rounds, call.staged() ? fitting : rounds.size(), size};
  if (call.staged()) local_.prepare(count * size, call.waiting);
  for (int64_t i = 0; i < flow.num_exchanges(); ++i) {
    if (call.staged()) {
      copy_bytes(local_.own_slot(i), data + flow.begin(i), flow.bytes(i));
      local_.sync(call.waiting);
    }
    if (carries(call)) exchange_all_reduce(call, flow, i);
    if (!call.staged()) continue;
    local_.sync(call.waiting);
    // The last round of an exchange is spread in the next one.
    if (i > 0) copy_bytes(data + flow.begin(i - 1), local_.result(i - 1), flow.bytes(i - 1));
    if (i + 1 == flow.num_exchanges())
      copy_bytes(data + flow.begin(i), local_.result(i), flow.bytes(i));
  }
}

/// Round k is gathered; then round k - 1, mostly summed by then, is spread.
void HierarchicalGroup::exchange_all_reduce(Call& call, const Flow& flow, int64_t exchange) {
  const auto ins_of = [&](int64_t round) {
    const int64_t begin = flow.rounds[round].begin * call.element_bytes();
    if (!call.staged()) return shifted(call.bases, begin);
    Bases ins;
    for (int i = 0; i < plan_.num_local(); ++i) ins.push_back(local_.slot(i, exchange));
    return shifted(ins, begin - flow.begin(exchange));
  };
  const auto outs_of = [&](int64_t round) {
    const int64_t begin = flow.rounds[round].begin * call.element_bytes();
    if (!call.staged()) return shifted(call.bases, begin);
    const int64_t within = flow.exchange_of(round);
    return shifted({local_.result(within)}, begin - flow.begin(within));
  };
  const int64_t first = flow.first(exchange);
  if (pairs_of(call.header.count * call.element_bytes()) != tcp::Pairs::kNone) {
    return run_pairs(call, ins_of(first), outs_of(first), call.header.count);
  }
  HierarchicalStep step(call.context, call.numbering);
  const auto spread = [&](int64_t round) {
    const int64_t sums = std::max<int64_t>(round + 1 - first, 0);
    add_spread(call, step, outs_of(round), flow.rounds[round].size(), -1, sums);
  };
  const bool spreads = !call.choice.one_step;
  for (int64_t k = first; k <= flow.last(exchange); ++k) {
    add_all_reduce_gather(call, step, ins_of(k), outs_of(k), flow.rounds[k].size());
    if (spreads && k > 0) spread(k - 1);
  }
  if (spreads && flow.last(exchange) + 1 == flow.rounds.size()) spread(flow.last(exchange));
  run(call, step);
}

void HierarchicalGroup::add_all_reduce_gather(Call& call, HierarchicalStep& step, const Bases& ins,
                                              const Bases& outs, int64_t count) {
  const auto slice = slice_of(call, count);
  const auto piece = [&](int host) {
    return call.choice.one_step ? slice : part_of(slice, host, plan_.num_hosts());
  };
  for (int i = 1; i < plan_.num_hosts(); ++i) {
    // Each host starts with another receiver.
    const int host = (plan_.host + i) % plan_.num_hosts();
    step.send_nodes(host, ins, piece(host));
  }
  step.reduce_nodes(ins, outs, piece(plan_.host), call.choice.one_step);
}

/// Every host sends its piece to all others, after `sums` sums; `except`: a host that does not take
/// part.
void HierarchicalGroup::add_spread(Call& call, HierarchicalStep& step, const Bases& outs,
                                   int64_t count, int except, int64_t sums) {
  const int owners = plan_.num_hosts() - (except >= 0 ? 1 : 0);
  const auto piece = [&](int host) {
    const int owner = except >= 0 && host > except ? host - 1 : host;
    return part_of(slice_of(call, count), owner, owners);
  };
  for (int i = 1; i < plan_.num_hosts(); ++i) {
    const int host = (plan_.host + i) % plan_.num_hosts();
    if (host == except) continue;
    step.send(host, outs[0], piece(plan_.host), sums);
    step.receive(host, outs, piece(host));
  }
}

void HierarchicalGroup::reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
                               const Waiting& waiting) {
  guarded([&] {
    const int64_t bytes = count * size_of(dtype);
    Call call =
        begin(next_header(OpKind::kReduce, count, dtype, op, root), data, bytes, bytes, waiting);
    do_reduce(call, static_cast<std::byte*>(data), count, root);
    end(call);
  });
}

/// Every host's nodes go to the root's host, which sums them. No other host has to wait for the
/// sum.
void HierarchicalGroup::do_reduce(Call& call, std::byte* data, int64_t count, int root) {
  if (call.staged()) local_.prepare(count * call.element_bytes(), call.waiting);
  const int64_t size = call.element_bytes();
  const auto rounds = tcp::rounds_of(count, size);
  const int root_host = plan_.topology.host_of[static_cast<size_t>(root)];
  for (int64_t k = 0; k < rounds.size(); ++k) {
    const int64_t begin = rounds[k].begin * size;
    const int64_t bytes = rounds[k].size() * size;
    Bases ins = shifted(call.bases, begin);
    if (call.staged()) {
      for (int i = 0; i < plan_.num_local(); ++i) ins.push_back(local_.slot(i, k));
      copy_bytes(local_.own_slot(k), data + begin, bytes);
      local_.sync(call.waiting);
    }
    if (carries(call)) {
      HierarchicalStep step(call.context, call.numbering);
      const auto slice = slice_of(call, rounds[k].size());
      if (plan_.host != root_host) {
        step.send_nodes(root_host, ins, slice);
      } else {
        std::byte* const to =
            call.staged() ? local_.result(k) : ins[static_cast<size_t>(local_of(root))];
        step.reduce_nodes(ins, std::span(&to, 1), slice, false);
      }
      run(call, step);
    }
    if (!call.staged()) continue;
    local_.sync(call.waiting);
    if (spec_.rank == root) copy_bytes(data + begin, local_.result(k), bytes);
  }
}

void HierarchicalGroup::reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                                       ReduceOp op, const Waiting& waiting) {
  guarded([&] {
    const int64_t bytes = count * size_of(dtype) * plan_.size;
    Call call =
        begin(next_header(OpKind::kReduceScatter, count, dtype, op, 0), in, bytes, bytes, waiting);
    do_reduce_scatter(call, static_cast<const std::byte*>(in), static_cast<std::byte*>(out), count);
    end(call);
  });
}

void HierarchicalGroup::do_reduce_scatter(Call& call, const std::byte* in, std::byte* out,
                                          int64_t count) {
  local_.prepare(count * call.element_bytes() * plan_.size, call.waiting);
  const int64_t size = call.element_bytes();
  const auto rounds = tcp::rounds_of(count, size * plan_.size);
  for (int64_t k = 0; k < rounds.size(); ++k) {
    const int64_t begin = rounds[k].begin * size;
    const int64_t bytes = rounds[k].size() * size;
    // The host's inputs for `rank`, by local rank.
    const auto ins_for = [&](int rank) {
      if (!call.staged()) return shifted(call.bases, rank * count * size + begin);
      Bases ins;
      for (int i = 0; i < plan_.num_local(); ++i) ins.push_back(local_.slot(i, k) + rank * bytes);
      return ins;
    };
    const auto place = [&](int rank) {
      return local_.alone() ? out + begin : local_.result(k) + local_of(rank) * bytes;
    };
    if (call.staged()) {
      std::byte* const slot = local_.own_slot(k);
      for (int rank = 0; rank < plan_.size; ++rank)
        copy_bytes(slot + rank * bytes, in + rank * count * size + begin, bytes);
    }
    local_.sync(call.waiting);
    if (carries(call)) {
      HierarchicalStep step(call.context, call.numbering);
      const auto slice = slice_of(call, rounds[k].size());
      for (int i = 1; i < plan_.num_hosts(); ++i) {
        const int host = (plan_.host + i) % plan_.num_hosts();
        for (const int rank : plan_.ranks_of(host)) step.send_nodes(host, ins_for(rank), slice);
      }
      for (const int rank : plan_.ranks_of(plan_.host)) {
        std::byte* const to = place(rank);
        step.reduce_nodes(ins_for(rank), std::span(&to, 1), slice, false);
      }
      run(call, step);
    }
    local_.sync(call.waiting);
    copy_bytes(out + begin, place(spec_.rank), bytes);
  }
}

}  // namespace lockstep::inline internal
