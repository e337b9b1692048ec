// Collectives that only move data. Within a host the shared group moves it; between hosts it goes
// from rank to rank, from its source to its final place.

#include <algorithm>
#include <iterator>
#include <span>

#include "lockstep/comm/native/hierarchical_group.h"

namespace lockstep::inline internal {

void HierarchicalGroup::exchange(const Exchange& exchange, const void* in, void* out,
                                 const Waiting& waiting) {
  guarded([&] {
    const auto header = next_header(op_kind(exchange.kind), exchange.count, exchange.dtype,
                                    ReduceOp::kSum, exchange.root);
    local_.shm().exchange(among(exchange, plan_.ranks_of(plan_.host)), in, out, waiting);
    exchange_with_others(exchange, header, static_cast<const std::byte*>(in),
                         static_cast<std::byte*>(out), waiting);
  });
}

/// If counts may differ, even an empty block is a frame: a difference then shows at once. If they
/// cannot differ, the hosts' first ranks exchange one all the same, so that hosts with different
/// calls learn of each other.
void HierarchicalGroup::exchange_with_others(const Exchange& exchange, const OpHeader& header,
                                             const std::byte* in, std::byte* out,
                                             const Waiting& waiting) {
  const int64_t size = size_of(exchange.dtype);
  Numbering numbering(plan_.size);
  std::vector<tcp::Outbound> outs;
  std::vector<tcp::Inbound> ins;
  const auto frame = [&](uint32_t part, int64_t bytes) {
    return tcp::Frame{tcp::Frame::kMagic, part, header, bytes};
  };
  for (int i = 1; i < plan_.size; ++i) {
    // Each rank starts with another receiver.
    const int peer = (spec_.rank + i) % plan_.size;
    if (plan_.topology.host_of[static_cast<size_t>(peer)] == plan_.host) continue;
    const bool always = !exchange.even() || (plan_.local == 0 && local_of(peer) == 0);
    const ExchangeBlock& mine = exchange.sends[static_cast<size_t>(peer)];
    const ExchangeBlock& theirs = exchange.receives[static_cast<size_t>(peer)];
    if (always || mine.count > 0) {
      outs.push_back({peer, frame(numbering.next_out(peer), mine.count * size),
                      mine.count > 0 ? in + mine.offset * size : nullptr});
    }
    if (always || theirs.count > 0) {
      ins.push_back({peer,
                     frame(numbering.next_in(peer), theirs.count * size),
                     theirs.count > 0 ? out + theirs.offset * size : nullptr,
                     {}});
    }
  }
  link_for(outs, ins, header, waiting.deadline);
  links_.exchange(outs, ins, waiting.deadline, spin_of(waiting));
}

/// If all first ranks of hosts exchange data, they meet as in any other collective. Other fellows
/// may have no data for each other, and then do not wait.
void HierarchicalGroup::link_for(std::span<const tcp::Outbound> outs,
                                 std::span<const tcp::Inbound> ins, const OpHeader& header,
                                 Deadline deadline) {
  if (plan_.local == 0) return link(header, deadline);
  if (is_linked_) return;
  const auto has = [&](int peer) {
    const auto is_with = [peer](const auto& item) { return item.peer == peer; };
    return std::any_of(outs.begin(), outs.end(), is_with) ||
           std::any_of(ins.begin(), ins.end(), is_with);
  };
  std::vector<int> needed;
  std::copy_if(fellows_.begin(), fellows_.end(), std::back_inserter(needed), has);
  links_.meet(needed, header, deadline);
}

}  // namespace lockstep::inline internal
