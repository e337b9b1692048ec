#include "lockstep/comm/native/recursive_doubling.h"

#include <array>
#include <cstring>

#include "lockstep/comm/kernels/reduce.h"

namespace lockstep::inline internal {

void RecursiveDoubling::run(const Sum& sum) const {
  if (sum.count == 0) return;
  const std::array<const void*, 2> ins{sum.lower, sum.upper};
  reduce(ins, sum.outs, sum.count, context_.operation.dtype, sum.op, context_.plan.size);
}

/// The sum of this host's ranks.
const std::byte* RecursiveDoubling::own_value(std::span<std::byte* const> ins, Span span) {
  if (span.size() == 0) return nullptr;
  const int64_t offset = span.begin * context_.element_bytes();
  if (ins.size() == 1) return ins[0] + offset;
  std::vector<const void*> leaves;
  for (const std::byte* in : ins) leaves.push_back(in + offset);
  std::byte* const sum = context_.scratch.take(bytes_of(span));
  void* const to = sum;
  const auto& operation = context_.operation;
  reduce(leaves, std::span(&to, 1), span.size(), operation.dtype, below_the_root(operation.op), 1);
  return sum;
}

/// Exchanges with the partner of `level`, after the earlier exchanges are complete; then calls
/// `then`.
void RecursiveDoubling::add_exchange(int level, const std::byte* from, Span sent, std::byte* to,
                                     Span received, std::function<void()> then) {
  const auto& plan = context_.plan;
  const int peer = plan.carrier(plan.host ^ (1 << level), context_.slice);
  const tcp::Gate gate{&done_, added_++};
  const auto frame = [&](uint32_t part, int64_t bytes) {
    return tcp::Frame{tcp::Frame::kMagic, part, context_.operation, bytes};
  };
  const int64_t bytes = bytes_of(received);
  out_.push_back({peer, frame(numbering_.next_out(peer), bytes_of(sent)), from, gate, {}});
  in_.push_back({peer, frame(numbering_.next_in(peer), bytes), to,
                 [this, bytes, then = std::move(then)](int64_t there) {
                   if (there < bytes) return;
                   then();
                   ++done_;
                 },
                 gate});
}

/// Goes backwards: each partner has summed the half that this host gave away.
void RecursiveDoubling::add_spread(std::span<std::byte* const> outs,
                                   const std::vector<Span>& held) {
  for (int level = static_cast<int>(held.size()) - 2; level >= 0; --level) {
    const auto place = static_cast<size_t>(level);
    const auto theirs = part_of(held[place], is_upper(level) ? 0 : 1, 2);
    const auto at = [&](std::byte* base, Span span) {
      return base + span.begin * context_.element_bytes();
    };
    std::vector<std::byte*> copies;
    for (std::byte* out : outs.subspan(1)) copies.push_back(at(out, theirs));
    std::byte* const to = at(outs[0], theirs);
    const auto size = static_cast<size_t>(bytes_of(theirs));
    add_exchange(level, at(outs[0], held[place + 1]), held[place + 1], to, theirs,
                 [to, size, copies = std::move(copies)] {
                   for (std::byte* copy : copies) std::memcpy(copy, to, size);
                 });
  }
}

void RecursiveDoubling::run(std::span<std::byte* const> ins, std::span<std::byte* const> outs,
                            Span span, tcp::Pairs pairs, Deadline deadline,
                            std::chrono::microseconds spin) {
  const bool halves = pairs == tcp::Pairs::kHalves;
  const int64_t size = context_.element_bytes();
  const std::byte* own = own_value(ins, span);
  std::vector<Span> held = {span};
  Sum sum{};
  for (int level = 0; 1 << level < context_.plan.num_hosts(); ++level) {
    const bool upper = is_upper(level);
    const bool last = 2 << level == context_.plan.num_hosts();
    const Span before = held.back();
    const Span given = halves ? part_of(before, upper ? 0 : 1, 2) : before;
    const Span kept = halves ? part_of(before, upper ? 1 : 0, 2) : before;
    const auto of_own = [&](Span part) {
      return own == nullptr ? nullptr : own + (part.begin - before.begin) * size;
    };
    std::byte* const theirs = context_.scratch.take(bytes_of(kept));
    const std::byte* const mine = of_own(kept);
    sum = {upper ? theirs : mine, upper ? mine : theirs, {}, kept.size(), context_.operation.op};
    if (last) {
      for (std::byte* out : outs) sum.outs.push_back(out + kept.begin * size);
    } else {
      sum.outs.push_back(context_.scratch.take(bytes_of(kept)));
      sum.op = below_the_root(sum.op);
    }
    const bool at_end = last && !halves;  // an output may be an input that is still being sent
    add_exchange(level, of_own(given), given, theirs, kept, [this, sum, at_end] {
      if (!at_end) run(sum);
    });
    own = last ? nullptr : static_cast<const std::byte*>(sum.outs[0]);
    held.push_back(kept);
  }
  if (halves) add_spread(outs, held);
  context_.links.exchange(out_, in_, deadline, spin);
  if (!halves) run(sum);
}

}  // namespace lockstep::inline internal
