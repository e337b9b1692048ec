#include "lockstep/parallel/int8_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <map>
#include <vector>

#include "lockstep/base/rounding.h"
#include "lockstep/collectives.h"
#include "lockstep/comm/kernels/compress.h"
#include "lockstep/parallel/chunks.h"
#include "lockstep/parallel/comm_hook_state.h"

namespace lockstep::inline internal {
namespace {

/// The state of one bucket. Legend: P ranks; B blocks per part; every rank has one part of the
/// bucket. A chunk is the same blocks of every part.
struct Int8Bucket {
  int index = 0;             ///< GradientBucket::index.
  int64_t ranks = 0;         ///< P.
  int64_t elements = 0;      ///< Of the bucket.
  int64_t blocks = 0;        ///< B.
  int64_t chunk_blocks = 0;  ///< Of a part, in each chunk but the last.
  at::Tensor rest;           ///< (P * B * 256): rounding errors of the gradients.
  at::Tensor sum_rest;       ///< (B * 256): rounding errors of this rank's sums.
  /// By chunk (P, bytes of its blocks), encoded: this rank's parts, then the sums of all.
  std::shared_ptr<SharedBuffer> sent;
  std::shared_ptr<SharedBuffer>
      received;             ///< The same shape: all ranks' values of this rank's part.
  std::vector<Work> works;  ///< By chunk: operations in progress.

  Int8Bucket(ProcessGroup& group, const GradientBucket& bucket)
      : index(bucket.index), ranks(group.size()), elements(bucket.flat.numel()) {
    blocks = divide_up(elements, ranks * kScaledBlock);
    chunk_blocks = std::max<int64_t>(kChunkElements / (ranks * kScaledBlock), 1);
    rest = at::zeros({ranks * blocks * kScaledBlock}, at::kFloat);
    sum_rest = at::zeros({blocks * kScaledBlock}, at::kFloat);
    sent = group.allocate(ranks * scaled_bytes(blocks));
    received = group.allocate(ranks * scaled_bytes(blocks));
    works.resize(static_cast<size_t>(divide_up(blocks, chunk_blocks)));
  }
};

/// Blocks [begin, begin + blocks) of every part.
struct Chunk {
  int64_t begin, blocks;
  char *sent, *received;  ///< (P, bytes).

  Chunk(const Int8Bucket& bucket, size_t index)
      : begin(static_cast<int64_t>(index) * bucket.chunk_blocks),
        blocks(std::min(bucket.chunk_blocks, bucket.blocks - begin)),
        sent(static_cast<char*>(bucket.sent->data()) + bucket.ranks * scaled_bytes(begin)),
        received(static_cast<char*>(bucket.received->data()) + bucket.ranks * scaled_bytes(begin)) {
  }
};

/// Of a part, per call of a thread: 1 MiB of float32.
constexpr int64_t kBlocksAtOnce = 1024;

class Int8Hook final : public CommHook {
 public:
  std::string describe() const override { return "int8"; }

  void buckets_changed(int first) override {
    unsummed_ = nullptr;
    buckets_.erase(buckets_.lower_bound(first), buckets_.end());
    loaded_.forget();
  }
  std::optional<HookState> state() const override {
    HookState all = loaded_.left();
    for (const auto& [index, bucket] : buckets_) {
      all[bucket_key(index, "rest")] = bucket->rest;
      all[bucket_key(index, "sum_rest")] = bucket->sum_rest;
    }
    return all;
  }
  void load_state(const HookState& state) override { loaded_.load(state); }

  std::function<void()> start(const GradientBucket& given, ProcessGroup& group) override {
    const at::NoGradGuard no_grad;
    const at::Tensor flat = given.flat;
    if (flat.scalar_type() != at::kFloat && flat.scalar_type() != at::kDouble) {
      Work work = all_reduce(group, flat, ReduceOp::kAvg, {.async = true},
                             CallSite::here().of_bucket(given.index));
      return [work]() mutable { work.wait(); };
    }
    Int8Bucket& bucket = bucket_of(given, group);
    const at::Tensor values = flat.to(at::kFloat);  // flat itself, except for float64
    send_parts(bucket, values.data_ptr<float>(), group);
    sum_what_waits(group);
    unsummed_ = &bucket;
    return [this, flat, values, &bucket, &group] {
      const at::NoGradGuard no_grad_at_end;
      sum_what_waits(group);
      read_sums(bucket, values.data_ptr<float>());
      if (!values.is_same(flat)) flat.copy_(values);
    };
  }

 private:
  Int8Bucket& bucket_of(const GradientBucket& given, ProcessGroup& group) {
    auto& bucket = buckets_[given.index];
    if (!bucket) {
      bucket = std::make_unique<Int8Bucket>(group, given);
      loaded_.take(bucket_key(given.index, "rest"), bucket->rest);
      loaded_.take(bucket_key(given.index, "sum_rest"), bucket->sum_rest);
    }
    return *bucket;
  }

  /// gradients / P + rest, encoded: each rank gets its part.
  static void send_parts(Int8Bucket& bucket, const float* values, ProcessGroup& group) {
    for (size_t index = 0; index < bucket.works.size(); ++index) {
      const Chunk chunk(bucket, index);
      for (int64_t part = 0; part < bucket.ranks; ++part) {
        encode_part(bucket, chunk, part, values);
      }
      bucket.works[index] =
          group.all_to_all(chunk.sent, chunk.received, scaled_bytes(chunk.blocks), DType::kUint8,
                           {.async = true}, CallSite::here().of_bucket(bucket.index));
    }
  }

  static void encode_part(const Int8Bucket& bucket, const Chunk& chunk, int64_t part,
                          const float* values) {
    char* const out = chunk.sent + part * scaled_bytes(chunk.blocks);
    const int64_t first = (part * bucket.blocks + chunk.begin) * kScaledBlock;
    auto* const rest = bucket.rest.data_ptr<float>() + first;
    in_threads(chunk.blocks, kBlocksAtOnce, [&](int64_t begin, int64_t blocks) {
      const int64_t at = std::min(first + begin * kScaledBlock, bucket.elements);
      const int64_t count = std::min(blocks * kScaledBlock, bucket.elements - at);
      encode_scaled(values + at, count, static_cast<int>(bucket.ranks), blocks,
                    rest + begin * kScaledBlock, out + scaled_bytes(begin));
    });
  }

  void sum_what_waits(ProcessGroup& group) {
    if (unsummed_) add_part(*unsummed_, group);
    unsummed_ = nullptr;
  }

  /// Sums this rank's part in rank order. Only the owner sums, so all ranks get the same bits.
  static void add_part(Int8Bucket& bucket, ProcessGroup& group) {
    for (size_t index = 0; index < bucket.works.size(); ++index) {
      bucket.works[index].wait();
      const Chunk chunk(bucket, index);
      const int64_t bytes = scaled_bytes(chunk.blocks);
      char* const own = chunk.sent + group.rank() * bytes;
      auto* const rest = bucket.sum_rest.data_ptr<float>() + chunk.begin * kScaledBlock;
      in_threads(chunk.blocks, kBlocksAtOnce, [&](int64_t begin, int64_t blocks) {
        std::vector<const char*> ins;
        for (int64_t rank = 0; rank < bucket.ranks; ++rank) {
          ins.push_back(chunk.received + rank * bytes + scaled_bytes(begin));
        }
        sum_scaled(ins, blocks, rest + begin * kScaledBlock, own + scaled_bytes(begin));
      });
      bucket.works[index] = group.all_gather(own, chunk.sent, bytes, DType::kUint8, {.async = true},
                                             CallSite::here().of_bucket(bucket.index));
    }
  }

  static void read_sums(Int8Bucket& bucket, float* values) {
    for (size_t index = 0; index < bucket.works.size(); ++index) {
      bucket.works[index].wait();
      const Chunk chunk(bucket, index);
      for (int64_t part = 0; part < bucket.ranks; ++part) {
        decode_part(bucket, chunk, part, values);
      }
    }
  }

  static void decode_part(const Int8Bucket& bucket, const Chunk& chunk, int64_t part,
                          float* values) {
    const char* const in = chunk.sent + part * scaled_bytes(chunk.blocks);
    const int64_t first = (part * bucket.blocks + chunk.begin) * kScaledBlock;
    in_threads(chunk.blocks, kBlocksAtOnce, [&](int64_t begin, int64_t blocks) {
      const int64_t at = std::min(first + begin * kScaledBlock, bucket.elements);
      const int64_t count = std::min(blocks * kScaledBlock, bucket.elements - at);
      decode_scaled(in + scaled_bytes(begin), count, values + at);
    });
  }

  std::map<int, std::unique_ptr<Int8Bucket>> buckets_;  // by index
  Int8Bucket* unsummed_ = nullptr;                      // the last one that was sent
  LoadedBuckets loaded_;
};

}  // namespace

std::shared_ptr<CommHook> make_int8_hook() {
  return std::make_shared<Int8Hook>();
}

}  // namespace lockstep::inline internal
