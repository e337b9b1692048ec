#include "lockstep/comm/native/shm/staged.h"

#include <vector>

#include "lockstep/base/rounding.h"
#include "lockstep/comm/bytes.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/spans.h"

namespace lockstep::shm {
namespace {

/// The size of a chunk, and the place of each chunk.
struct Chunks {
  int64_t count;     // elements in all
  int64_t elements;  // in a whole chunk
  int64_t num() const { return divide_up(count, elements); }
  Span at(int64_t index) const {
    const int64_t begin = index * elements;
    return {begin, std::min(begin + elements, count)};
  }
  bool has(int64_t index) const { return index >= 0 && index < num(); }
};

/// With a root: the reduction to that rank alone.
class AllReduce {
 public:
  static constexpr int kAllRanks = -1;

  AllReduce(const StagedCall& call, std::byte* data, int64_t count, ReduceOp op,
            int root = kAllRanks)
      : call_(call),
        data_(data),
        op_(op),
        has_result_(root == kAllRanks || root == call.rank),
        size_(size_of(call.dtype)),
        chunks_{count, kChunkBytes / size_},
        ins_(static_cast<size_t>(call.size)) {}

  void run() {
    for (int64_t round = 0; round < chunks_.num() + 2; ++round) {
      if (chunks_.has(round)) hand_in(round);
      if (chunks_.has(round - 1)) reduce_own(round - 1);
      if (chunks_.has(round - 2) && has_result_) take_out(round - 2);
      call_.barrier.sync(call_.waiting);
    }
  }

 private:
  Span slice(int64_t chunk, int rank) const {
    return slice_of(chunks_.at(chunk).size(), call_.size, rank,
                    static_cast<int64_t>(kCacheLine) / size_);
  }
  std::byte* user(int64_t chunk, const Span& part) const {
    return data_ + (chunks_.at(chunk).begin + part.begin) * size_;
  }
  std::byte* in(int rank, int64_t chunk, const Span& part) const {
    return call_.control.staging(rank).in[chunk & 1] + part.begin * size_;
  }
  std::byte* out(int rank, int64_t chunk) const {
    return call_.control.staging(rank).out[chunk & 1];
  }

  /// Copies the data that the others will reduce; this rank's own slice stays in place.
  void hand_in(int64_t chunk) {
    for (int rank = 0; rank < call_.size; ++rank) {
      const Span part = slice(chunk, rank);
      if (rank == call_.rank) continue;
      copy_bytes(in(call_.rank, chunk, part), user(chunk, part), part.size() * size_);
    }
  }
  void reduce_own(int64_t chunk) {
    const Span part = slice(chunk, call_.rank);
    if (part.size() == 0) return;
    for (int rank = 0; rank < call_.size; ++rank) {
      ins_[static_cast<size_t>(rank)] =
          rank == call_.rank ? user(chunk, part) : in(rank, chunk, part);
    }
    void* const outs[] = {out(call_.rank, chunk), user(chunk, part)};
    reduce(ins_, std::span(outs, has_result_ ? 2 : 1), part.size(), call_.dtype, op_, call_.size);
  }
  void take_out(int64_t chunk) {
    for (int rank = 0; rank < call_.size; ++rank) {
      const Span part = slice(chunk, rank);
      if (rank != call_.rank) copy_bytes(user(chunk, part), out(rank, chunk), part.size() * size_);
    }
  }

  const StagedCall& call_;
  std::byte* const data_;
  const ReduceOp op_;
  const bool has_result_;
  const int64_t size_;
  const Chunks chunks_;
  std::vector<const void*> ins_;
};

}  // namespace

void staged_all_reduce(const StagedCall& call, std::byte* data, int64_t count, ReduceOp op) {
  AllReduce(call, data, count, op).run();
}

void staged_reduce(const StagedCall& call, std::byte* data, int64_t count, ReduceOp op, int root) {
  AllReduce(call, data, count, op, root).run();
}

void staged_reduce_scatter(const StagedCall& call, const std::byte* in, std::byte* out,
                           int64_t count, ReduceOp op) {
  const int64_t size = size_of(call.dtype);
  const Chunks chunks{count, std::max<int64_t>(kChunkBytes / size / call.size, 1)};
  std::vector<const void*> ins(static_cast<size_t>(call.size));
  const auto part = [&](int rank, int64_t begin) { return in + (rank * count + begin) * size; };
  for (int64_t round = 0; round < chunks.num() + 1; ++round) {
    if (chunks.has(round)) {
      const Span chunk = chunks.at(round);
      auto* const stage = call.control.staging(call.rank).in[round & 1];
      for (int rank = 0; rank < call.size; ++rank) {
        if (rank == call.rank) continue;
        copy_bytes(stage + rank * chunk.size() * size, part(rank, chunk.begin),
                   chunk.size() * size);
      }
    }
    if (chunks.has(round - 1)) {
      const Span chunk = chunks.at(round - 1);
      for (int rank = 0; rank < call.size; ++rank) {
        const auto* const stage = call.control.staging(rank).in[(round - 1) & 1];
        ins[static_cast<size_t>(rank)] =
            rank == call.rank ? part(rank, chunk.begin) : stage + call.rank * chunk.size() * size;
      }
      void* const to = out + chunk.begin * size;
      reduce(ins, std::span(&to, 1), chunk.size(), call.dtype, op, call.size);
    }
    call.barrier.sync(call.waiting);
  }
}

void staged_all_gather(const StagedCall& call, const std::byte* in, std::byte* out, int64_t count) {
  const int64_t size = size_of(call.dtype);
  const Chunks chunks{count, kChunkBytes / size};
  copy_bytes(out + call.rank * count * size, in, count * size);
  for (int64_t round = 0; round < chunks.num() + 1; ++round) {
    if (chunks.has(round)) {
      const Span chunk = chunks.at(round);
      copy_bytes(call.control.staging(call.rank).in[round & 1],
                 out + (call.rank * count + chunk.begin) * size, chunk.size() * size);
    }
    if (chunks.has(round - 1)) {
      const Span chunk = chunks.at(round - 1);
      for (int rank = 0; rank < call.size; ++rank) {
        if (rank == call.rank) continue;
        copy_bytes(out + (rank * count + chunk.begin) * size,
                   call.control.staging(rank).in[(round - 1) & 1], chunk.size() * size);
      }
    }
    call.barrier.sync(call.waiting);
  }
}

void staged_broadcast(const StagedCall& call, std::byte* data, int64_t count, int root) {
  const int64_t size = size_of(call.dtype);
  const Chunks chunks{count, kChunkBytes / size};
  auto& stage = call.control.staging(root);
  for (int64_t round = 0; round < chunks.num() + 1; ++round) {
    if (call.rank == root && chunks.has(round)) {
      const Span chunk = chunks.at(round);
      copy_bytes(stage.in[round & 1], data + chunk.begin * size, chunk.size() * size);
    }
    if (call.rank != root && chunks.has(round - 1)) {
      const Span chunk = chunks.at(round - 1);
      copy_bytes(data + chunk.begin * size, stage.in[(round - 1) & 1], chunk.size() * size);
    }
    call.barrier.sync(call.waiting);
  }
}

}  // namespace lockstep::shm
