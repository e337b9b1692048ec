#include "lockstep/parallel/block_scaled.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lockstep/parallel/bucket_memory.h"
#include "lockstep/tensor/collectives.h"
#include "lockstep/tensor/shared_tensor.h"

namespace lockstep {
namespace {

/// The scale of a block; NaN when a value is not finite.
float scale_of(const float* values) {
  float largest = 0;
  bool finite = true;
  for (int64_t k = 0; k < kScaledBlock; ++k) {
    const float amount = std::fabs(values[k]);
    finite &= amount <= std::numeric_limits<float>::max();
    largest = std::max(largest, amount);
  }
  // 127 times the scale must be finite too.
  static const float largest_scale = std::nextafter(std::numeric_limits<float>::max() / 127, 0.0F);
  return finite ? std::min(largest / 127, largest_scale) : std::numeric_limits<float>::quiet_NaN();
}

void encode_block(const float* values, float scale, int8_t* out, float* rest) {
  const float inverse = 1 / scale;
  // Of tiny values the inverse is infinite; they are all rest. NaN is told by the scale alone.
  if (!(scale > 0) || !(inverse <= std::numeric_limits<float>::max())) {
    std::fill_n(out, kScaledBlock, int8_t{0});
    const bool numbers = scale >= 0;
    for (int64_t k = 0; k < kScaledBlock; ++k) rest[k] = numbers ? values[k] : 0;
    return;
  }
  for (int64_t k = 0; k < kScaledBlock; ++k) {
    const float scaled = values[k] * inverse;
    const int rounded = static_cast<int>(scaled + (scaled < 0 ? -0.5F : 0.5F));
    const int bounded = std::clamp(rounded, -127, 127);
    out[k] = static_cast<int8_t>(bounded);
    rest[k] = values[k] - static_cast<float>(bounded) * scale;
  }
}

/// What one bucket needs. Legend: P ranks; B blocks a part; every rank has one part of the bucket.
struct State {
  int64_t blocks = 0;              ///< B.
  at::Tensor values;               ///< (P * B * 256): the gradients, and zeros at the end.
  at::Tensor rest;                 ///< The same shape: what rounding them took away.
  at::Tensor sum, sum_rest;        ///< (B * 256): of this rank's part.
  at::Tensor sent, received;       ///< (P, bytes of B blocks): parts, encoded.
  at::Tensor own_part, all_parts;  ///< (bytes), (P, bytes): sums, encoded.

  State(ProcessGroup& group, int64_t elements) {
    const int64_t ranks = group.size();
    blocks = (elements + ranks * kScaledBlock - 1) / (ranks * kScaledBlock);
    const int64_t part = blocks * kScaledBlock, bytes = scaled_bytes(blocks);
    values = at::zeros({ranks * part}, at::kFloat);
    rest = at::zeros_like(values);
    sum = at::zeros({part}, at::kFloat);
    sum_rest = at::zeros_like(sum);
    const auto shared = [&](int64_t parts) {
      return from_shared(group.allocate(parts * bytes), 0, {parts, bytes}, at::kByte);
    };
    sent = shared(ranks);
    received = shared(ranks);
    own_part = shared(1);
    all_parts = shared(ranks);
  }
};

class Int8Hook final : public CommHook {
 public:
  std::string describe() const override { return "int8"; }

  void buckets_changed(int first) override {
    states_.erase(states_.lower_bound(first), states_.end());
    loaded_.forget();
  }
  std::optional<HookState> state() const override {
    HookState all = loaded_.left();
    for (const auto& [bucket, state] : states_) {
      all[bucket_key(bucket, "rest")] = state->rest;
      all[bucket_key(bucket, "sum_rest")] = state->sum_rest;
    }
    return all;
  }
  void load_state(const HookState& state) override { loaded_.load(state); }

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    const at::NoGradGuard no_grad;
    const at::Tensor flat = bucket.flat;
    if (flat.scalar_type() != at::kFloat && flat.scalar_type() != at::kDouble) {
      Work work = all_reduce(group, flat, ReduceOp::kAvg, {.async = true});
      return [work]() mutable { work.wait(); };
    }
    State& state = state_of(bucket, group);
    send_parts(state, flat, group);
    Work work = all_to_all(group, state.sent, state.received, {.async = true});
    return [work, flat, &state, &group]() mutable {
      const at::NoGradGuard no_grad_at_end;
      work.wait();
      add_part(state, group);
      all_gather(group, state.own_part, state.all_parts).wait();
      read_parts(state, flat);
    };
  }

 private:
  State& state_of(const GradientBucket& bucket, ProcessGroup& group) {
    auto& state = states_[bucket.index];
    if (!state) {
      state = std::make_unique<State>(group, bucket.flat.numel());
      loaded_.take(bucket_key(bucket.index, "rest"), state->rest);
      loaded_.take(bucket_key(bucket.index, "sum_rest"), state->sum_rest);
    }
    return *state;
  }

  /// values = gradients / P + rest, encoded.
  static void send_parts(State& state, const at::Tensor& flat, ProcessGroup& group) {
    state.values.copy_(state.rest);
    state.values.narrow(0, 0, flat.numel()).add_(flat, 1.0 / group.size());
    encode_scaled_parts(state.values, state.blocks, state.sent, state.rest);
  }

  /// Sums this rank's part in rank order; the owner alone does, so all ranks get the same bits.
  static void add_part(State& state, ProcessGroup& group) {
    auto* sum = state.sum.data_ptr<float>();
    state.sum.copy_(state.sum_rest);
    for (int64_t rank = 0; rank < group.size(); ++rank) {
      decode_scaled(data_of(state.received, rank), state.blocks, sum, true);
    }
    encode_scaled(sum, state.blocks, data_of(state.own_part, 0), state.sum_rest.data_ptr<float>());
  }

  static void read_parts(State& state, const at::Tensor& flat) {
    for (int64_t part = 0; part < state.all_parts.size(0); ++part) {
      auto* values = state.values.data_ptr<float>() + part * state.blocks * kScaledBlock;
      decode_scaled(data_of(state.all_parts, part), state.blocks, values, false);
    }
    flat.copy_(state.values.narrow(0, 0, flat.numel()));
  }

  static void encode_scaled_parts(const at::Tensor& values, int64_t blocks, const at::Tensor& out,
                                  const at::Tensor& rest) {
    for (int64_t part = 0; part < out.size(0); ++part) {
      const int64_t begin = part * blocks * kScaledBlock;
      encode_scaled(values.data_ptr<float>() + begin, blocks, data_of(out, part),
                    rest.data_ptr<float>() + begin);
    }
  }

  static char* data_of(const at::Tensor& parts, int64_t part) {
    return static_cast<char*>(parts.data_ptr()) + part * parts.size(1);
  }

  std::map<int, std::unique_ptr<State>> states_;  // by bucket
  LoadedBuckets loaded_;
};

}  // namespace

void encode_scaled(const float* values, int64_t blocks, char* out, float* rest) {
  auto* scales = reinterpret_cast<float*>(out);
  auto* numbers = reinterpret_cast<int8_t*>(scales + blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t at = b * kScaledBlock;
    scales[b] = scale_of(values + at);
    encode_block(values + at, scales[b], numbers + at, rest + at);
  }
}

void decode_scaled(const char* in, int64_t blocks, float* values, bool add) {
  const auto* scales = reinterpret_cast<const float*>(in);
  const auto* numbers = reinterpret_cast<const int8_t*>(scales + blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    const float scale = scales[b];
    for (int64_t k = b * kScaledBlock; k < (b + 1) * kScaledBlock; ++k) {
      values[k] = (add ? values[k] : 0) + static_cast<float>(numbers[k]) * scale;
    }
  }
}

std::shared_ptr<CommHook> make_int8_hook() {
  return std::make_shared<Int8Hook>();
}

}  // namespace lockstep
