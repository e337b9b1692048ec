#include "apps/lockstep/memory_ceiling.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>

#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/spans.h"
#include "lockstep/error.h"

namespace lockstep::app {
namespace {

[[gnu::always_inline]] inline void add_to_both(float* __restrict a, float* __restrict b,
                                               int64_t count) {
  for (int64_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
}

[[gnu::always_inline]] inline void add(float* __restrict a, const float* __restrict b,
                                       int64_t count) {
  for (int64_t i = 0; i < count; ++i) a[i] += b[i];
}

/// The sum of all buffers, written to all, in blocks that stay in the first-level cache.
[[gnu::always_inline]] inline void add_all(float* const* buffers, int num, int64_t begin,
                                           int64_t count) {
  constexpr int64_t kBlock = 1024;
  if (num == 2) return add_to_both(buffers[0] + begin, buffers[1] + begin, count);
  for (int64_t at = begin; at < begin + count; at += kBlock) {
    const int64_t now = std::min(kBlock, begin + count - at);
    for (int k = 1; k < num; ++k) add(buffers[0] + at, buffers[k] + at, now);
    for (int k = 1; k < num; ++k) {
      std::memcpy(buffers[k] + at, buffers[0] + at, static_cast<size_t>(now) * sizeof(float));
    }
  }
}

using AddAll = void (*)(float* const* buffers, int num, int64_t begin, int64_t count);

void add_all_plain(float* const* buffers, int num, int64_t begin, int64_t count) {
  add_all(buffers, num, begin, count);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void add_all_avx2(float* const* buffers, int num, int64_t begin,
                                          int64_t count) {
  add_all(buffers, num, begin, count);
}
[[gnu::target("avx512f")]] void add_all_avx512(float* const* buffers, int num, int64_t begin,
                                               int64_t count) {
  add_all(buffers, num, begin, count);
}
#endif

AddAll best_add_all() {
#if defined(__x86_64__)
  if (best_instruction_set() == InstructionSet::kAvx512) return add_all_avx512;
  if (best_instruction_set() == InstructionSet::kAvx2) return add_all_avx2;
#endif
  return add_all_plain;
}

}  // namespace

MemoryCeiling::MemoryCeiling(int ranks, int64_t bytes)
    : ranks_(ranks), stride_((bytes + 4095) / 4096 * 4096), total_(stride_ * 2 * ranks + 4096) {
  void* const place = ::mmap(nullptr, static_cast<size_t>(total_), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw Error(ErrorCode::kUnavailable, io_error("bench: mmap").what());
  memory_ = static_cast<std::byte*>(place);
  gate_ = reinterpret_cast<Gate*>(memory_ + stride_ * 2 * ranks);
}

MemoryCeiling::~MemoryCeiling() {
  ::munmap(memory_, static_cast<size_t>(total_));
}

float* MemoryCeiling::buffer(int rank, int which) const {
  return reinterpret_cast<float*>(memory_ + stride_ * (2 * rank + which));
}

void MemoryCeiling::barrier() {
  const int round = gate_->round.load();
  if (gate_->came.fetch_add(1) + 1 == ranks_) {
    gate_->came.store(0);
    gate_->round.store(round + 1);
    return;
  }
  for (int spins = 0; gate_->round.load() == round; ++spins) {
    if (spins > 10000) sched_yield();
  }
}

void MemoryCeiling::touch(const char* op, int rank, int64_t bytes) {
  const std::string_view name = op;
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  const Span part = slice_of(count, ranks_, rank, 16);
  const auto part_bytes = static_cast<size_t>(part.size()) * sizeof(float);
  if (name == "all_reduce") {
    float* buffers[256];
    for (int k = 0; k < ranks_; ++k) buffers[k] = buffer(k, 0);
    static const AddAll best = best_add_all();
    best(buffers, ranks_, part.begin, part.size());
  } else if (name == "reduce_scatter") {
    for (int k = 1; k < ranks_; ++k) {
      add(buffer(rank, 0) + part.begin, buffer((rank + k) % ranks_, 0) + part.begin, part.size());
    }
  } else if (name == "all_gather") {
    for (int k = 0; k < ranks_; ++k) {
      const Span block = slice_of(count, ranks_, k, 16);
      std::memcpy(buffer(rank, 1) + block.begin, buffer(k, 0) + block.begin, part_bytes);
    }
  } else if (name == "broadcast" && rank != 0) {
    std::memcpy(buffer(rank, 1), buffer(0, 0), static_cast<size_t>(bytes));
  }
}

double MemoryCeiling::pass(const char* op, int rank, int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  barrier();
  const auto start = Clock::now();
  touch(op, rank, bytes);
  barrier();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace lockstep::app
