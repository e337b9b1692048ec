#include "lockstep/comm/native/hierarchical_step.h"

#include <algorithm>
#include <cstring>

#include "lockstep/base/rounding.h"
#include "lockstep/comm/kernels/reduce.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kScratchBlock = int64_t{1} << 20;
/// Bytes that must have come from all peers before they are summed: few enough to be still in the
/// cache.
constexpr int64_t kReduceBytes = 64 << 10;

}  // namespace

void Scratch::reset() {
  block_ = 0;
  used_ = 0;
}

std::byte* Scratch::take(int64_t bytes) {
  constexpr int64_t kAlign = 64;
  bytes = round_up(bytes, kAlign);
  while (block_ < blocks_.size() && blocks_[block_].bytes - used_ < bytes + kAlign) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const int64_t size = std::max(bytes + kAlign, kScratchBlock);
    blocks_.push_back(
        {std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(size)), size});
  }
  std::byte* start = blocks_[block_].data.get() + used_;
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(start) % kAlign);
  const int64_t gap = past == 0 ? 0 : kAlign - past;
  used_ += gap + bytes;
  return start + gap;
}

std::vector<RankRange> own_piece_nodes(const HierarchicalPlan& plan) {
  std::vector<RankRange> nodes;
  for (int host = 0; host < plan.num_hosts(); ++host) {
    if (host == plan.host) {
      for (const int rank : plan.ranks_of(host)) nodes.push_back({rank, rank + 1});
    } else {
      const auto& theirs = plan.nodes[static_cast<size_t>(host)];
      nodes.insert(nodes.end(), theirs.begin(), theirs.end());
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const RankRange& a, const RankRange& b) { return a.lo < b.lo; });
  return nodes;
}

/// Sums a piece block by block as the peers' values arrive.
class HierarchicalStep::Reducer {
 public:
  Reducer(const StepContext& context, int64_t count)
      : sum_(context.sum),
        operation_(context.operation),
        element_bytes_(context.element_bytes()),
        count_(count) {}

  void add_value(const std::byte* value) { values_.push_back(value); }
  void add_out(std::byte* out) { outs_.push_back(out); }
  size_t add_source() {
    arrived_.push_back(kNothing);
    return arrived_.size() - 1;
  }

  /// True if this completes the sum.
  bool arrived(size_t source, int64_t bytes) {
    arrived_[source] = bytes;
    const int64_t least = *std::min_element(arrived_.begin(), arrived_.end());
    if (least == kNothing) return false;
    const int64_t there = least / element_bytes_;
    if (there == count_ || (there - done_) * element_bytes_ >= kReduceBytes) reduce_to(there);
    return there == count_;
  }

  void reduce_all() { reduce_to(count_); }

 private:
  static constexpr int64_t kNothing = -1;

  void reduce_to(int64_t end) {
    if (end == done_) return;
    sum_.run(values_, outs_, end - done_, operation_.dtype, operation_.op);
    const int64_t bytes = (end - done_) * element_bytes_;
    for (auto& value : values_) value = static_cast<const std::byte*>(value) + bytes;
    for (auto& out : outs_) out = static_cast<std::byte*>(out) + bytes;
    done_ = end;
  }

  const TreeSum& sum_;
  OpHeader operation_;
  int64_t element_bytes_;
  int64_t count_;
  // The places of the elements from done_ on.
  std::vector<const void*> values_;  // by node of sum_
  std::vector<void*> outs_;
  std::vector<int64_t> arrived_;  // bytes, by remote value
  int64_t done_ = 0;              // elements
};

HierarchicalStep::HierarchicalStep(StepContext& context, Numbering& numbering)
    : context_(context),
      numbering_(numbering),
      partials_(static_cast<size_t>(context.plan.num_hosts())) {
  context_.scratch.reset();
}

tcp::Frame HierarchicalStep::frame(uint32_t part, int64_t bytes) const {
  return {tcp::Frame::kMagic, part, context_.operation, bytes};
}

std::byte* HierarchicalStep::memory(Set& set, size_t place, int64_t bytes) {
  if (set.size() <= place) set.resize(place + 1);
  if (set[place] == nullptr) set[place] = context_.scratch.take(bytes);  // no later round is larger
  return set[place];
}

void HierarchicalStep::send(int host, const std::byte* base, Span span, int64_t sums) {
  const int peer = context_.plan.carrier(host, context_.slice);
  const int64_t bytes = bytes_of(span);
  out_.push_back({peer,
                  frame(numbering_.next_out(peer), bytes),
                  bytes == 0 ? nullptr : base + span.begin * context_.element_bytes(),
                  {&sums_done_, sums},
                  {}});
}

void HierarchicalStep::add_receive(int host, std::byte* to, int64_t bytes,
                                   std::function<void(int64_t)> arrived, tcp::Gate gate) {
  const int peer = context_.plan.carrier(host, context_.slice);
  in_.push_back({peer, frame(numbering_.next_in(peer), bytes), to, std::move(arrived), gate});
}

void HierarchicalStep::receive(int host, std::span<std::byte* const> bases, Span span) {
  const int64_t bytes = bytes_of(span);
  if (bytes == 0) return add_receive(host, nullptr, 0, {}, {});
  const int64_t offset = span.begin * context_.element_bytes();
  std::byte* const first = bases[0] + offset;
  if (bases.size() == 1) return add_receive(host, first, bytes, {}, {});
  std::vector<std::byte*> copies;
  for (std::byte* base : bases.subspan(1)) copies.push_back(base + offset);
  const auto copy_on = [first, copies, done = int64_t{0}](int64_t there) mutable {
    for (std::byte* copy : copies)
      std::memcpy(copy + done, first + done, static_cast<size_t>(there - done));
    done = there;
  };
  add_receive(host, first, bytes, copy_on, {});
}

void HierarchicalStep::send_nodes(int host, std::span<std::byte* const> ins, Span span) {
  const auto& plan = context_.plan;
  const int64_t offset = span.begin * context_.element_bytes();
  size_t place = 0;
  for (const RankRange& node : plan.nodes[static_cast<size_t>(plan.host)]) {
    std::vector<const void*> leaves;
    for (int rank = node.lo; rank < node.hi && span.size() > 0; ++rank)
      leaves.push_back(
          ins[static_cast<size_t>(plan.topology.local_rank_of[static_cast<size_t>(rank)])] +
          offset);
    if (leaves.size() <= 1) {
      send(host, leaves.empty() ? nullptr : static_cast<const std::byte*>(leaves[0]),
           {0, span.size()});
      continue;
    }
    send_partial(host, place++, std::move(leaves), span.size());
  }
}

/// The memory is that of the previous round: frames to a peer go one after the other.
void HierarchicalStep::send_partial(int host, size_t place, std::vector<const void*> leaves,
                                    int64_t count) {
  const auto& operation = context_.operation;
  std::byte* const partial =
      memory(partials_[static_cast<size_t>(host)], place, count * context_.element_bytes());
  send(host, partial, {0, count});
  out_.back().make = [leaves = std::move(leaves), partial, count, operation] {
    void* const to = partial;
    reduce(leaves, std::span(&to, 1), count, operation.dtype, below_the_root(operation.op), 1);
  };
}

void HierarchicalStep::reduce_nodes(std::span<std::byte* const> ins,
                                    std::span<std::byte* const> outs, Span span, bool at_end) {
  const auto& plan = context_.plan;
  const int64_t bytes = bytes_of(span);
  const int64_t offset = span.begin * context_.element_bytes();
  auto reducer = std::make_shared<Reducer>(context_, span.size());
  const int64_t number = sums_begun_++;
  Set& received = received_[static_cast<size_t>(number) % kSets];
  size_t place = 0;
  for (const RankRange& node : context_.sum.nodes()) {
    const auto rank = static_cast<size_t>(node.lo);
    const int host = plan.topology.host_of[rank];
    if (host == plan.host) {
      std::byte* const base = ins[static_cast<size_t>(plan.topology.local_rank_of[rank])];
      reducer->add_value(bytes == 0 ? nullptr : base + offset);
      continue;
    }
    std::byte* const value = memory(received, place++, bytes);
    reducer->add_value(value);
    if (at_end) {
      add_receive(host, value, bytes, {}, {});
    } else {
      add_receive(host, value, bytes,
                  [this, reducer, source = reducer->add_source()](int64_t there) {
                    if (reducer->arrived(source, there)) ++sums_done_;
                  },
                  {&sums_done_, number + 1 - static_cast<int64_t>(kSets)});
    }
  }
  for (std::byte* out : outs) reducer->add_out(bytes == 0 ? nullptr : out + offset);
  if (at_end) at_end_.push_back(std::move(reducer));
}

void HierarchicalStep::run(Deadline deadline, std::chrono::microseconds spin) {
  context_.links.exchange(out_, in_, deadline, spin);
  for (const auto& reducer : at_end_) reducer->reduce_all();
}

}  // namespace lockstep::inline internal
