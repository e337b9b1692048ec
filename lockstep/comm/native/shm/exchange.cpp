#include "lockstep/comm/native/shm/exchange.h"
#include "lockstep/base/rounding.h"
#include "lockstep/comm/bytes.h"

#include <algorithm>

namespace lockstep::shm {
ExchangeCall::ExchangeCall(const StagedCall& call, const Exchange& exchange, const void* in,
                           void* out)
    : call_(call),
      exchange_(exchange),
      in_(static_cast<const std::byte*>(in)),
      out_(static_cast<std::byte*>(out)),
      size_(size_of(exchange.dtype)),
      chunk_(kChunkBytes / size_),
      stream_(exchange.sends, call.rank),
      small_(stream_.size() * size_ <= kSmallStreamBytes) {}

void ExchangeCall::hand_in() {
  for (int rank = 0; rank < call_.size; ++rank) {
    const ExchangeBlock& block = exchange_.sends[static_cast<size_t>(rank)];
    row(call_.rank)[rank] = {block.offset, block.count, stream_.position_of(block), stream_.size()};
  }
  if (small_) stage(0);
}

std::optional<ExchangeCall::Disagreement> ExchangeCall::disagreement() const {
  for (int rank = 0; rank < call_.size; ++rank) {
    const int64_t expected = exchange_.receives[static_cast<size_t>(rank)].count;
    if (from(rank).count != expected) return Disagreement{rank, from(rank).count, expected};
  }
  return std::nullopt;
}

void ExchangeCall::run(const std::vector<std::byte*>& inputs) {
  copy_own();
  int64_t longest = 0;
  for (int rank = 0; rank < call_.size; ++rank) longest = std::max(longest, from(rank).stream);
  if (longest * size_ <= kSmallStreamBytes) {
    take(0);
    return call_.barrier.sync(call_.waiting);
  }
  if (!inputs.empty()) {
    for (int step = 1; step < call_.size; ++step) {
      // Each rank starts with another sender, so that they do not all read from one at a time.
      const int rank = (call_.rank + step) % call_.size;
      copy_bytes(place_of(rank), inputs[static_cast<size_t>(rank)] + from(rank).offset * size_,
                 from(rank).count * size_);
    }
    return call_.barrier.sync(call_.waiting);
  }
  const int64_t rounds = divide_up(longest, chunk_);
  for (int64_t round = 0; round < rounds + 1; ++round) {
    if (round < rounds && !small_) stage(round);
    if (round > 0) take(round - 1);
    call_.barrier.sync(call_.waiting);
  }
}

/// Copies this rank's stream of `round` to its staging area.
void ExchangeCall::stage(int64_t round) {
  std::byte* to = call_.control.staging(call_.rank).in[round & 1];
  for (const ExchangeBlock& part : stream_.parts(round * chunk_, (round + 1) * chunk_)) {
    copy_bytes(to, in_ + part.offset * size_, part.count * size_);
    to += part.count * size_;
  }
}

/// Copies the blocks for this rank from every rank's stream of `round`.
void ExchangeCall::take(int64_t round) {
  const int64_t begin = round * chunk_;
  for (int step = 1; step < call_.size; ++step) {
    const int rank = (call_.rank + step) % call_.size;
    const Entry& entry = from(rank);
    const int64_t first = std::max(entry.position, begin);
    const int64_t last = std::min(entry.position + entry.count, begin + chunk_);
    if (first >= last) continue;
    copy_bytes(place_of(rank) + (first - entry.position) * size_,
               call_.control.staging(rank).in[round & 1] + (first - begin) * size_,
               (last - first) * size_);
  }
}

void ExchangeCall::copy_own() {
  const ExchangeBlock& block = exchange_.sends[static_cast<size_t>(call_.rank)];
  if (block.count == 0) return;
  copy_bytes(place_of(call_.rank), in_ + block.offset * size_, block.count * size_);
}

}  // namespace lockstep::shm
