#include "lockstep/tensor/c10d/gloo_group.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <type_traits>

#include "lockstep/base/text.h"
#include "lockstep/comm/bootstrap/members.h"
#include "lockstep/comm/bytes.h"
#include "lockstep/comm/checked_group.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/error.h"
#include "lockstep/tensor/c10d/adapters.h"
#include "lockstep/tensor/device/dtype.h"

namespace lockstep::inline internal {
namespace {

// Floats as integers in the same order, for engines that leave the minimum and maximum with NaN
// unspecified.

template <class Float>
using OrderedKey = std::conditional_t<sizeof(Float) == 4, int32_t, int64_t>;

/// Keys have the order of the numbers, -0 before 0; the key of NaN is the greatest of all, or the
/// least.
template <class Float>
OrderedKey<Float> ordered_key(Float value, bool nan_is_greatest) {
  using Limits = std::numeric_limits<OrderedKey<Float>>;
  if (value != value) return nan_is_greatest ? Limits::max() : Limits::min();
  const auto bits = std::bit_cast<OrderedKey<Float>>(value);
  return bits < 0 ? bits ^ Limits::max() : bits;  // for negative numbers, more bits are less
}

template <class Float>
Float from_ordered_key(OrderedKey<Float> key) {
  return std::bit_cast<Float>(key < 0 ? key ^ std::numeric_limits<OrderedKey<Float>>::max() : key);
}

/// libtorch takes zero for no timeout.
std::chrono::milliseconds time_left(const Waiting& waiting) {
  return std::max(waiting.deadline.left(), std::chrono::milliseconds(1));
}

/// `count` elements at `data`, unchanged. Gloo ignores const.
at::Tensor view(const void* data, int64_t count, DType dtype) {
  static std::byte nothing{};
  void* const place = count > 0 ? const_cast<void*>(data) : &nothing;
  return at::from_blob(place, {count}, at::TensorOptions(to_scalar_type(dtype)));
}
/// For data that only moves.
at::Tensor bytes_view(const void* data, int64_t count, DType dtype) {
  return view(data, count * size_of(dtype), DType::kUint8);
}
/// For reductions.
at::Tensor parts_view(const void* data, int64_t count, DType dtype) {
  const Parts parts = parts_of(dtype);
  return view(data, count * parts.each, parts.dtype);
}

/// The type in which ProcessGroupGloo reduces a type that it lacks.
DType widened(DType dtype) {
  if (dtype == DType::kInt16) return DType::kInt32;
  if (dtype == DType::kBFloat16) return DType::kFloat32;
  return dtype;
}

/// Gloo's exceptions have only text.
Error from_gloo(const std::string& doing, const std::exception& error) {
  const std::string text = error.what();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  const bool late = has("imed out") || has("imeout");
  const bool lost = has("closed by peer") || has("reset by peer") || has("Broken pipe");
  return Error(late   ? ErrorCode::kTimeout
               : lost ? ErrorCode::kPeerLost
                      : ErrorCode::kIo,
               fmt::format("{}: Gloo: {}", doing, first_line(text)));
}

/// When a call times out, Gloo ends the connections on which it waited, for all calls.
bool is_end_by_another_call(const std::exception& error, const Waiting& waiting) {
  return !waiting.deadline.passed() &&
         std::string_view(error.what()).find("timeout caused pair closure") !=
             std::string_view::npos;
}

class GlooGroup final : public CheckedGroup {
 public:
  GlooGroup(const GroupSpec& spec, c10::intrusive_ptr<::c10d::ProcessGroupGloo> gloo)
      : CheckedGroup(spec), gloo_(std::move(gloo)) {}

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override {
    collective(header_of(OpKind::kAllReduce, count, dtype, op), waiting,
               [&] { sum(data, count, dtype, op, waiting); });
  }
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override {
    const auto header = header_of(OpKind::kReduce, count, dtype, op, root);
    // Gloo uses the buffers of all ranks; buffers of ranks other than root must stay unchanged.
    collective(header, waiting, [&] {
      if (spec_.rank == root) return sum(data, count, dtype, op, waiting);
      with_buffer(copy_of(data, count * size_of(dtype)),
                  [&](std::byte* copy) { sum(copy, count, dtype, op, waiting); });
    });
  }
  void broadcast(void* data, int64_t count, DType dtype, int root,
                 const Waiting& waiting) override {
    collective(header_of(OpKind::kBroadcast, count, dtype, ReduceOp::kSum, root), waiting, [&] {
      std::vector<at::Tensor> tensors = {bytes_view(data, count, dtype)};
      ::c10d::BroadcastOptions options;
      options.rootRank = root;
      options.timeout = time_left(waiting);
      if (count > 0) finish_collective([&] { return gloo_->broadcast(tensors, options); }, waiting);
    });
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override {
    collective(header_of(OpKind::kAllGather, count, dtype), waiting, [&] {
      std::vector<std::vector<at::Tensor>> outs(1);
      const int64_t bytes = count * size_of(dtype);
      for (int rank = 0; rank < spec_.size; ++rank) {
        outs[0].push_back(bytes_view(static_cast<std::byte*>(out) + rank * bytes, count, dtype));
      }
      std::vector<at::Tensor> ins = {bytes_view(in, count, dtype)};
      ::c10d::AllgatherOptions options;
      options.timeout = time_left(waiting);
      if (count > 0)
        finish_collective([&] { return gloo_->allgather(outs, ins, options); }, waiting);
    });
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& waiting) override {
    collective(header_of(OpKind::kReduceScatter, count, dtype, op), waiting, [&] {
      const int64_t bytes = count * size_of(dtype);
      const auto all = with_buffer(copy_of(in, bytes * spec_.size), [&](std::byte* copy) {
        sum(copy, count * spec_.size, dtype, op, waiting);
      });
      copy_bytes(out, all.data() + spec_.rank * bytes, bytes);
    });
  }
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override;

 private:
  using Request = c10::intrusive_ptr<::c10d::Work>;
  /// Gloo's tags: for exchanges, for send() and recv(), and for messages that are never sent.
  enum Tag : int { kExchange = 1, kMessage = 2, kNothing = 3 };

  static std::vector<std::byte> copy_of(const void* data, int64_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(data);
    return {begin, begin + bytes};
  }

  /// Runs `start`, and waits for its work. A message that is given up is no longer used by Gloo.
  template <class Start>
  void finish(const Start& start, const WaitReason& reason, const Waiting& waiting) {
    with_texts(reason, waiting, [&] { start()->wait(time_left(waiting)); });
  }
  /// The same for collectives, whose wait may be interrupted and resumed: in between it checks for
  /// errors of other ranks.
  template <class Start>
  void finish_collective(const Start& start, const Waiting& waiting) {
    const WaitReason reason = this_collective();
    with_texts(reason, waiting, [&] {
      under_way_ = start();
      while (!under_way_->isCompleted() && !waiting.deadline.passed()) {
        try {
          under_way_->wait(std::min(time_left(waiting), kLookPause));
        } catch (const std::exception&) {  // its own error is thrown below
          if (!under_way_->isCompleted()) look_for_trouble(reason);
        }
      }
      under_way_->wait(time_left(waiting));
    });
  }
  template <class Body>
  void with_texts(const WaitReason& reason, const Waiting& waiting, const Body& body) const {
    try {
      body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (is_end_by_another_call(error, waiting)) await_group_error();
      throw from_gloo(reason.text(), error);
    }
  }
  void sum(void* data, int64_t count, DType dtype, ReduceOp op, const Waiting& waiting) {
    if (count == 0) return;
    if (op == ReduceOp::kMin || op == ReduceOp::kMax) {
      if (dtype == DType::kFloat64) return extremum<double>(data, count, dtype, op, waiting);
      if (at::isFloatingType(to_scalar_type(dtype))) {
        return extremum<float>(data, count, dtype, op, waiting);
      }
    }
    if (const DType wide = widened(dtype); wide == dtype) {
      start_sum(parts_view(data, count, dtype), to_c10d(dtype, op), waiting);
    } else {
      const at::Tensor values = view(data, count, dtype);
      with_buffer(std::vector<std::byte>(static_cast<size_t>(count * size_of(wide))),
                  [&](std::byte* copy) {
                    const at::Tensor wider = view(copy, count, wide).copy_(values);
                    start_sum(wider, to_c10d(dtype, op), waiting);
                    values.copy_(wider);
                  });
    }
    if (op == ReduceOp::kAvg) divide(data, count, dtype, spec_.size);
  }
  /// Gloo leaves the result with NaN unspecified, so keys replace the numbers. The numbers may lie
  /// at any address.
  template <class Float>
  void extremum(void* data, int64_t count, DType dtype, ReduceOp op, const Waiting& waiting) {
    using Key = OrderedKey<Float>;
    const at::Tensor values = view(data, count, dtype);
    const at::Tensor wide = values.to(c10::CppTypeToScalarType<Float>::value);
    auto* const bytes = static_cast<std::byte*>(wide.data_ptr());
    with_buffer(std::vector<Key>(static_cast<size_t>(count)), [&](Key* keys) {
      for (int64_t i = 0; i < count; ++i) {
        Float value;
        std::memcpy(&value, bytes + i * int64_t{sizeof value}, sizeof value);
        keys[i] = ordered_key(value, op == ReduceOp::kMax);
      }
      constexpr DType kKey = sizeof(Key) == 4 ? DType::kInt32 : DType::kInt64;
      start_sum(view(keys, count, kKey), to_c10d(kKey, op), waiting);
      for (int64_t i = 0; i < count; ++i) {
        const auto value = from_ordered_key<Float>(keys[i]);
        std::memcpy(bytes + i * int64_t{sizeof value}, &value, sizeof value);
      }
    });
    values.copy_(wide);
  }
  void start_sum(const at::Tensor& values, ::c10d::ReduceOp op, const Waiting& waiting) {
    std::vector<at::Tensor> tensors = {values};
    ::c10d::AllreduceOptions options;
    options.reduceOp = op;
    options.timeout = time_left(waiting);
    finish_collective([&] { return gloo_->allreduce(tensors, options); }, waiting);
  }
  void fold(int64_t* values, int count, ReduceOp op, const Waiting& waiting) override {
    sum(values, count, DType::kInt64, op, waiting);
  }
  void bytes_to(int peer, const void* data, int64_t bytes, const WaitReason& reason,
                const Waiting& waiting) override {
    finish([&] { return start_send(data, bytes, peer, kMessage); }, reason, waiting);
  }
  void bytes_from(int peer, void* data, int64_t bytes, const WaitReason& reason,
                  const Waiting& waiting) override {
    finish([&] { return start_recv(data, bytes, peer, kMessage); }, reason, waiting);
  }
  /// If one wait takes too long, Gloo ends all operations and closes its connections: so this makes
  /// such a wait. Afterwards it touches no buffer, and can be destroyed at once.
  void stop(bool in_collective) noexcept override {
    const auto quietly = [](const auto& body) {
      try {
        body();
      } catch (const std::exception&) {  // as expected
      }
    };
    std::byte nothing{};
    const int peer = (spec_.rank + 1) % spec_.size;
    if (peer != spec_.rank) {
      quietly([&] { start_recv(&nothing, 1, peer, kNothing)->wait(std::chrono::milliseconds(1)); });
    }
    if (in_collective && under_way_) quietly([&] { under_way_->wait(kStoreLimit); });
  }
  Request start_send(const void* data, int64_t bytes, int peer, int tag) {
    std::vector<at::Tensor> tensors = {bytes_view(data, bytes, DType::kUint8)};
    return gloo_->send(tensors, peer, tag);
  }
  Request start_recv(void* data, int64_t bytes, int peer, int tag) {
    std::vector<at::Tensor> tensors = {bytes_view(data, bytes, DType::kUint8)};
    return gloo_->recv(tensors, peer, tag);
  }

  const c10::intrusive_ptr<::c10d::ProcessGroupGloo> gloo_;
  Request under_way_;  // used by the collectives' thread
};

void GlooGroup::exchange(const Exchange& exchange, const void* in, void* out,
                         const Waiting& waiting) {
  const int64_t size = size_of(exchange.dtype);
  collective(header_of(exchange), waiting, [&] {
    if (!exchange.even()) require_equal_counts(exchange, waiting);
    std::vector<Request> requests;
    const auto start = [&](int rank) {
      const auto& sent = exchange.sends[static_cast<size_t>(rank)];
      const auto& received = exchange.receives[static_cast<size_t>(rank)];
      const auto* const from = static_cast<const std::byte*>(in) + sent.offset * size;
      auto* const to = static_cast<std::byte*>(out) + received.offset * size;
      if (rank == spec_.rank) return copy_bytes(to, from, sent.count * size);
      if (received.count > 0)
        requests.push_back(start_recv(to, received.count * size, rank, kExchange));
      if (sent.count > 0) requests.push_back(start_send(from, sent.count * size, rank, kExchange));
    };
    with_texts(this_collective(), waiting, [&] {
      for (int rank = 0; rank < spec_.size; ++rank) start(rank);
      for (const auto& request : requests) request->wait(time_left(waiting));
    });
  });
}

/// Gloo writes to connections that a peer has just closed: that is an error, but must not end the
/// process.
void ignore_broken_pipes() {
  struct sigaction now = {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    ::signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

bool gloo_is_built_in(std::string*) {
  return true;
}

std::unique_ptr<GroupImpl> make_gloo_group(const GroupSpec& spec, Deadline deadline) {
  using ::c10d::ProcessGroupGloo;
  ignore_broken_pipes();
  const auto options = ProcessGroupGloo::Options::create(spec.timeout);
  options->threads = 2;
  try {
    options->devices.push_back(
        ProcessGroupGloo::createDeviceForHostname(spec.addresses[static_cast<size_t>(spec.rank)]));
    await_members(spec, deadline);
    auto store =
        c10::make_intrusive<StoreForC10d>(spec.store, spec.name + "/gloo/", deadline.left());
    auto gloo = c10::make_intrusive<ProcessGroupGloo>(store, spec.rank, spec.size, options);
    return std::make_unique<GlooGroup>(spec, std::move(gloo));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw from_gloo("creating the process group", error);
  }
}

}  // namespace lockstep::inline internal
