#include "lockstep/comm_hook.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <typeinfo>

#include "lockstep/base/text.h"
#include "lockstep/collectives.h"
#include "lockstep/comm/kernels/compress.h"
#include "lockstep/error.h"
#include "lockstep/parallel/auto_hook.h"
#include "lockstep/parallel/chunks.h"
#include "lockstep/parallel/int8_hook.h"
#include "lockstep/parallel/power_sgd.h"

namespace lockstep {
namespace {

/// Sends gradients in a 16-bit type.
class RoundedAverage final : public CommHook {
 public:
  explicit RoundedAverage(DType dtype) : dtype_(dtype) {}

  std::string describe() const override { return dtype_ == DType::kFloat16 ? "fp16" : "bf16"; }

  void buckets_changed(int first) override {
    staging_.erase(staging_.lower_bound(first), staging_.end());
  }

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    const at::Tensor flat = bucket.flat;
    if (flat.scalar_type() != at::kFloat && flat.scalar_type() != at::kDouble) {
      Work work = all_reduce(group, flat, ReduceOp::kAvg, {.async = true},
                             CallSite::here().of_bucket(bucket.index));
      return [work]() mutable { work.wait(); };
    }
    const at::NoGradGuard no_grad;
    const at::Tensor values = flat.to(at::kFloat);  // flat itself, except for float64
    const Staging& staging = staging_of(bucket, group);
    std::vector<Work> works = send(values, staging, group, bucket.index);
    return [this, works, flat, values, &staging]() mutable {
      const at::NoGradGuard no_grad_at_end;
      read(works, staging, values);
      if (!values.is_same(flat)) flat.copy_(values);
    };
  }

 private:
  /// Send buffer of a bucket, shared with the peers: made once per size.
  using Staging = std::shared_ptr<SharedBuffer>;
  static constexpr int64_t kAtOnce = int64_t{1} << 18;  // per thread
  static constexpr int64_t kBytes = 2;

  const Staging& staging_of(const GradientBucket& bucket, ProcessGroup& group) {
    const int64_t bytes = bucket.flat.numel() * kBytes;
    Staging& staging = staging_[bucket.index];
    if (!staging || staging->bytes() < bytes) staging = group.allocate(bytes);
    return staging;
  }

  std::vector<Work> send(const at::Tensor& values, const Staging& staging, ProcessGroup& group,
                         int bucket) const {
    const auto* const from = values.data_ptr<float>();
    std::vector<Work> works;
    for (int64_t chunk = 0; chunk < values.numel(); chunk += kChunkElements) {
      const int64_t elements = std::min(kChunkElements, values.numel() - chunk);
      char* const rounded = static_cast<char*>(staging->data()) + chunk * kBytes;
      in_threads(elements, kAtOnce, [&](int64_t begin, int64_t count) {
        narrow(from + chunk + begin, count, group.size(), dtype_, rounded + begin * kBytes);
      });
      works.push_back(group.all_reduce(rounded, elements, dtype_, ReduceOp::kSum, {.async = true},
                                       CallSite::here().of_bucket(bucket)));
    }
    return works;
  }

  void read(std::vector<Work>& works, const Staging& staging, const at::Tensor& values) const {
    auto* const to = values.data_ptr<float>();
    int64_t chunk = 0;
    for (Work& work : works) {
      work.wait();
      const int64_t elements = std::min(kChunkElements, values.numel() - chunk);
      const char* const rounded = static_cast<char*>(staging->data()) + chunk * kBytes;
      in_threads(elements, kAtOnce, [&](int64_t begin, int64_t count) {
        widen(rounded + begin * kBytes, count, dtype_, to + chunk + begin);
      });
      chunk += elements;
    }
  }

  DType dtype_;
  std::map<int, Staging> staging_;  // by bucket
};

}  // namespace

std::string CommHook::describe() const {
  return c10::demangle(typeid(*this).name());
}

void CommHook::load_state(const HookState& state) {
  if (state.empty()) return;
  throw Error(ErrorCode::kCorrupt, fmt::format("state of hook {}, which has none: '{}'", describe(),
                                               state.begin()->first));
}

const std::vector<std::string>& comm_hook_names() {
  static const std::vector<std::string> names = {"none", "auto", "fp16",
                                                 "bf16", "int8", "powersgd"};
  return names;
}

std::shared_ptr<CommHook> make_comm_hook(const std::string& name) {
  if (name == "none") return nullptr;
  if (name == "auto") return std::make_shared<AutoHook>();
  if (name == "fp16") return std::make_shared<RoundedAverage>(DType::kFloat16);
  if (name == "bf16") return std::make_shared<RoundedAverage>(DType::kBFloat16);
  if (name == "int8") return make_int8_hook();
  if (name == "powersgd") return make_power_sgd_hook();
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("there is no communication hook '{}'{} (known: {})", name,
                  did_you_mean(name, comm_hook_names()), fmt::join(comm_hook_names(), ", ")));
}

}  // namespace lockstep
