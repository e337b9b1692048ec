#include "lockstep/parallel/power_sgd.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/collectives.h"
#include "lockstep/error.h"
#include "lockstep/parallel/comm_hook_state.h"

namespace lockstep::inline internal {
namespace {

/// A gradient (n, ...) that is sent as P (n, r) and Q (m, r).
struct ThinMatrix {
  size_t gradient = 0;  ///< Of the bucket.
  at::Tensor p, q;      ///< Parts of ThinBucket::ps and qs.
};

/// The state of one bucket.
struct ThinBucket {
  at::Tensor rest;  ///< As GradientBucket::flat: the part that was not sent.
  std::vector<ThinMatrix> thin;
  std::vector<size_t> whole;         ///< The other gradients of the bucket,
  std::vector<at::Tensor> whole_at;  ///< parts of `wholes`.
  at::Tensor ps, qs, wholes;         ///< Vectors in shared memory; undefined when empty.
};

class PowerSgdHook final : public CommHook {
 public:
  explicit PowerSgdHook(const PowerSgdOptions& options) : options_(options) {}

  std::string describe() const override {
    return fmt::format("powersgd (rank {}, start_step {}, min_saving {}, seed {})", options_.rank,
                       options_.start_step, options_.min_saving, options_.seed);
  }

  void buckets_changed(int first) override {
    states_.erase(states_.lower_bound(first), states_.end());
    loaded_.forget();
  }
  std::optional<HookState> state() const override {
    HookState all = loaded_.left();
    all["step"] = at::full({1}, step_, at::kLong);
    for (const auto& [bucket, state] : states_) {
      all[bucket_key(bucket, "rest")] = state.rest;
      if (state.qs.defined()) all[bucket_key(bucket, "q")] = state.qs;
    }
    return all;
  }
  void load_state(const HookState& state) override {
    loaded_.load(state);
    const at::Tensor step = at::full({1}, step_, at::kLong);
    loaded_.take("step", step);
    step_ = step.item<int64_t>();
  }

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    const at::NoGradGuard no_grad;
    const at::Tensor flat = bucket.flat;
    const bool exact = step_ < options_.start_step ||
                       (flat.scalar_type() != at::kFloat && flat.scalar_type() != at::kDouble);
    if (bucket.last) ++step_;
    if (exact) {
      Work work = all_reduce(group, flat, ReduceOp::kAvg, {.async = true},
                             CallSite::here().of_bucket(bucket.index));
      return [work]() mutable { work.wait(); };
    }
    ThinBucket& state = state_of(bucket, group);
    flat.add_(state.rest);
    state.rest.copy_(flat);
    std::vector<Work> works = send(state, bucket, group);
    return [this, works, bucket, &state, &group]() mutable {
      const at::NoGradGuard no_grad_at_end;
      for (Work& work : works) work.wait();
      finish(state, bucket, group);
      // A gradient that is not finite would stay in rest and Q forever. The bucket has the same
      // bits on every rank, so all do this in the same step.
      if (!at::isfinite(bucket.flat).all().item<bool>()) start_anew(state, bucket);
    };
  }

 private:
  /// The gradient as a matrix; a copy unless its rows are contiguous.
  static at::Tensor matrix(const GradientBucket& bucket, size_t index) {
    const at::Tensor& gradient = bucket.gradients[index];
    return gradient.reshape({gradient.size(0), -1});
  }

  /// 0 if compression of the gradient does not pay.
  int64_t rank_for(const at::Tensor& gradient) const {
    if (gradient.dim() < 2 || gradient.numel() == 0) return 0;
    const int64_t n = gradient.size(0), m = gradient.numel() / n;
    const int64_t rank = std::min({n, m, options_.rank});
    const auto thin = static_cast<double>((n + m) * rank);
    return thin * options_.min_saving < static_cast<double>(n * m) ? rank : 0;
  }

  ThinBucket& state_of(const GradientBucket& bucket, ProcessGroup& group) {
    ThinBucket& state = states_[bucket.index];
    if (state.rest.defined()) return state;
    state.rest = at::zeros_like(bucket.flat);
    lay_out(state, bucket, group);
    start_anew(state, bucket);
    loaded_.take(bucket_key(bucket.index, "rest"), state.rest);
    if (state.qs.defined()) loaded_.take(bucket_key(bucket.index, "q"), state.qs);
    return state;
  }

  /// No rest, and the first guess of Q.
  void start_anew(ThinBucket& state, const GradientBucket& bucket) const {
    state.rest.zero_();
    auto generator =
        at::detail::createCPUGenerator(options_.seed + static_cast<uint64_t>(bucket.index));
    for (ThinMatrix& thin : state.thin) {
      thin.q.copy_(at::randn(thin.q.sizes(), generator, thin.q.options()));
    }
  }

  void lay_out(ThinBucket& state, const GradientBucket& bucket, ProcessGroup& group) const {
    int64_t ps = 0, qs = 0, wholes = 0;
    for (size_t i = 0; i < bucket.gradients.size(); ++i) {
      const at::Tensor& gradient = bucket.gradients[i];
      if (const int64_t rank = rank_for(gradient)) {
        ps += gradient.size(0) * rank;
        qs += gradient.numel() / gradient.size(0) * rank;
      } else {
        wholes += gradient.numel();
      }
    }
    const auto shared = [&](int64_t count) {
      const auto type = bucket.flat.scalar_type();
      const auto bytes = count * bucket.flat.element_size();
      return count == 0 ? at::Tensor() : from_shared(group.allocate(bytes), 0, {count}, type);
    };
    state.ps = shared(ps);
    state.qs = shared(qs);
    state.wholes = shared(wholes);
    ps = qs = wholes = 0;
    const auto part = [](const at::Tensor& all, int64_t& begin, at::IntArrayRef sizes) {
      const int64_t count = c10::multiply_integers(sizes);
      return all.narrow(0, std::exchange(begin, begin + count), count).view(sizes);
    };
    for (size_t i = 0; i < bucket.gradients.size(); ++i) {
      const at::Tensor& gradient = bucket.gradients[i];
      if (const int64_t rank = rank_for(gradient)) {
        const int64_t n = gradient.size(0), m = gradient.numel() / n;
        state.thin.push_back({i, part(state.ps, ps, {n, rank}), part(state.qs, qs, {m, rank})});
      } else if (gradient.numel() > 0) {
        state.whole.push_back(i);
        state.whole_at.push_back(part(state.wholes, wholes, gradient.sizes()));
      }
    }
  }

  /// P = M Q, summed over the ranks; and the gradients that are sent whole.
  static std::vector<Work> send(ThinBucket& state, const GradientBucket& bucket,
                                ProcessGroup& group) {
    for (ThinMatrix& thin : state.thin) {
      at::matmul_out(thin.p, matrix(bucket, thin.gradient), thin.q);
    }
    for (size_t i = 0; i < state.whole.size(); ++i) {
      state.whole_at[i].copy_(bucket.gradients[state.whole[i]]);
    }
    std::vector<Work> works;
    if (state.ps.defined()) {
      works.push_back(all_reduce(group, state.ps, ReduceOp::kSum, {.async = true},
                                 CallSite::here().of_bucket(bucket.index)));
    }
    if (state.wholes.defined()) {
      works.push_back(all_reduce(group, state.wholes, ReduceOp::kAvg, {.async = true},
                                 CallSite::here().of_bucket(bucket.index)));
    }
    return works;
  }

  /// P orthonormal, Q = M^T P averaged over the ranks, gradient = P Q^T.
  static void finish(ThinBucket& state, const GradientBucket& bucket, ProcessGroup& group) {
    for (ThinMatrix& thin : state.thin) {
      thin.p.copy_(std::get<0>(at::linalg_qr(thin.p)));
      at::matmul_out(thin.q, matrix(bucket, thin.gradient).t(), thin.p);
    }
    if (state.qs.defined()) {
      const CallSite site = CallSite::here().of_bucket(bucket.index);
      all_reduce(group, state.qs, ReduceOp::kAvg, {}, site).wait();
    }
    for (const ThinMatrix& thin : state.thin) {
      const at::Tensor& gradient = bucket.gradients[thin.gradient];
      gradient.copy_(at::matmul(thin.p, thin.q.t()).view(gradient.sizes()));
    }
    // Gradients sent whole leave no rest: the average is subtracted from the average.
    for (size_t i = 0; i < state.whole.size(); ++i) {
      const at::Tensor& gradient = bucket.gradients[state.whole[i]];
      view_like(state.rest, bucket, gradient).copy_(state.whole_at[i]);
      gradient.copy_(state.whole_at[i]);
    }
    state.rest.sub_(bucket.flat);
  }

  /// The part of `vector`, laid out as bucket.flat, at the place of `gradient`.
  static at::Tensor view_like(const at::Tensor& vector, const GradientBucket& bucket,
                              const at::Tensor& gradient) {
    const auto offset = (static_cast<const char*>(gradient.data_ptr()) -
                         static_cast<const char*>(bucket.flat.data_ptr())) /
                        gradient.element_size();
    return vector.as_strided(gradient.sizes(), gradient.strides(), offset);
  }

  PowerSgdOptions options_;
  int64_t step_ = 0;
  std::map<int, ThinBucket> states_;  // by bucket
  LoadedBuckets loaded_;
};

}  // namespace

void PowerSgdOptions::validate() const {
  const auto check = [](bool good, const char* field, auto value, const char* allowed) {
    if (good) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("PowerSGD: {} is {}; it must be {}", field, value, allowed));
  };
  check(rank >= 1, "rank", rank, "at least 1");
  // Before the second step the buckets are formed anew; state from before would be lost.
  check(start_step >= 1, "start_step", start_step, "at least 1");
  check(min_saving > 0, "min_saving", min_saving, "greater than 0");
}

std::shared_ptr<CommHook> make_power_sgd_hook(const PowerSgdOptions& options) {
  options.validate();
  return std::make_shared<PowerSgdHook>(options);
}

}  // namespace lockstep::inline internal
