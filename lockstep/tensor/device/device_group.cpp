#include "lockstep/tensor/device/device_group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/where.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "lockstep/base/text.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/calls_in_flight.h"
#include "lockstep/tensor/device/dtype.h"
#include "lockstep/tensor/device/stream_order.h"

namespace lockstep::inline internal {
namespace {

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
}

bool is_floating(DType dtype) {
  return kind_of(dtype) == DTypeKind::kFloating;
}

/// The reduction that an engine does: averages are divided afterwards.
ReduceOp engine_op(DType dtype, ReduceOp op) {
  const ReduceOp on_parts = op_on_parts(dtype, op);
  return on_parts == ReduceOp::kAvg || on_parts == ReduceOp::kPremulSum ? ReduceOp::kSum : on_parts;
}

/// Bits of floats as integers in the floats' order, and back: see ordered_key() of Gloo.
at::Tensor turned_negative(const at::Tensor& bits) {
  const int64_t most = bits.scalar_type() == at::kInt ? std::numeric_limits<int32_t>::max()
                                                      : std::numeric_limits<int64_t>::max();
  return at::where(bits.lt(0), bits.bitwise_xor(most), bits);
}

/// Engines leave the minimum and maximum with NaN unspecified. Here NaN wins.
at::Tensor ordered_keys(const at::Tensor& floats, bool nan_is_greatest) {
  const bool is_short = floats.scalar_type() == at::kFloat;
  const at::Tensor keys = turned_negative(floats.view(is_short ? at::kInt : at::kLong));
  const int64_t most =
      is_short ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
  return keys.masked_fill_(floats.isnan(), nan_is_greatest ? most : -most - 1);
}

class DeviceGroup final : public GroupImpl {
 public:
  DeviceGroup(const GroupSpec& spec, std::unique_ptr<GroupImpl> host, EngineKind kind)
      : spec_(spec), host_(std::move(host)), kind_(std::move(kind)), device_(kind_.device.str()) {}

  std::string device() const override { return device_; }

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override {
    if (!waiting.on_device) return host_->all_reduce(data, count, dtype, op, waiting);
    on_device({.count = count, .kind = OpKind::kAllReduce, .dtype = dtype, .op = op}, waiting, [&] {
      const at::Tensor values = parts(data, count, dtype);
      reduce_all(values, dtype, op, waiting);
    });
  }
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override {
    if (!waiting.on_device) return host_->reduce(data, count, dtype, op, root, waiting);
    on_device({.count = count, .root = root, .kind = OpKind::kReduce, .dtype = dtype, .op = op},
              waiting, [&] {
                const at::Tensor values = parts(data, count, dtype);
                reduce_all(spec_.rank == root ? values : values.clone(), dtype, op, waiting);
              });
  }
  void broadcast(void* data, int64_t count, DType dtype, int root,
                 const Waiting& waiting) override {
    if (!waiting.on_device) return host_->broadcast(data, count, dtype, root, waiting);
    on_device({.count = count, .root = root, .kind = OpKind::kBroadcast, .dtype = dtype}, waiting,
              [&] { engine_->broadcast(bytes(data, count, dtype), root, call(waiting)); });
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override {
    if (!waiting.on_device) return host_->all_gather(in, out, count, dtype, waiting);
    on_device({.count = count, .kind = OpKind::kAllGather, .dtype = dtype}, waiting, [&] {
      engine_->all_gather(bytes(in, count, dtype), bytes(out, count * spec_.size, dtype),
                          call(waiting));
    });
  }
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& waiting) override {
    if (!waiting.on_device) return host_->reduce_scatter(in, out, count, dtype, op, waiting);
    on_device({.count = count, .kind = OpKind::kReduceScatter, .dtype = dtype, .op = op}, waiting,
              [&] {
                const at::Tensor all = parts(in, count * spec_.size, dtype);
                scatter_sum(all, parts(out, count, dtype), dtype, op, waiting);
              });
  }
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override;
  void barrier(const Waiting& waiting) override { host_->barrier(waiting); }
  bool try_send(const void* data, const MessageHeader& message, int destination,
                CallSite site) override {
    return host_->try_send(data, message, destination, site);
  }
  bool send(const void* data, const MessageHeader& message, int destination,
            const Waiting& waiting) override {
    return host_->send(data, message, destination, waiting);
  }
  bool receive(int source, MessageSink& sink, const Waiting& waiting) override {
    return host_->receive(source, sink, waiting);
  }
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override {
    return host_->allocate(bytes, waiting);
  }
  void give_up(const Error& error, Deadline deadline) noexcept override {
    host_->give_up(error, deadline);
  }

 private:
  /// Runs `body` once all ranks are about to run the same call.
  template <class Body>
  void on_device(OpHeader header, const Waiting& waiting, const Body& body) {
    if (reduces(header.kind)) require_reduction(header);
    header.sequence = ++sequence_;
    header_ = header;
    require_equal_headers(waiting);
    if (header.count == 0 && header.kind != OpKind::kAllGatherv &&
        header.kind != OpKind::kAllToAllv) {
      return;
    }
    try {
      const at::NoGradGuard no_grad;
      const c10::DeviceGuard guard(kind_.device);
      if (!engine_) engine_ = kind_.make(waiting.deadline);
      if (kind_.device.is_cpu()) {
        body();
      } else {
        in_stream(waiting, body);
      }
    } catch (const Error&) {
      abort();
      throw;
    } catch (const std::exception& error) {
      abort();
      throw Error(ErrorCode::kIo, fmt::format("{}: {}", this_call(), first_line(error.what())));
    }
  }
  /// Runs `body` in the group's stream, between events of the caller's.
  template <class Body>
  void in_stream(const Waiting& waiting, const Body& body) {
    in_flight_.check();
    if (!stream_) stream_ = side_stream(kind_.device);
    const c10::StreamGuard guard(*stream_);
    const auto order = std::dynamic_pointer_cast<StreamOrder>(waiting.order);
    if (order) order->enter_stream();
    body();
    if (order) {
      order->leave_stream();
      in_flight_.add(order->done(), waiting.deadline, late_error());
    } else if (!DeviceEvent(kind_.device).await(waiting.deadline)) {
      throw Error(late_error());
    }
  }
  Error late_error() const {
    return {ErrorCode::kTimeout,
            fmt::format("{}: {} did not end it in time, though every rank had begun", this_call(),
                        kind_.name)};
  }
  void require_equal_headers(const Waiting& waiting);
  void require_equal_counts(const Exchange& exchange, const Waiting& waiting);
  std::string this_call() const {
    return fmt::format("{} on {}, {}", describe(header_), spec_.rank_name(spec_.rank), device_);
  }
  EngineCall call(const Waiting& waiting) const {
    return {waiting.deadline, [this] { return this_call(); }};
  }
  void abort() noexcept {
    if (engine_) engine_->abort();
  }
  static bool reduces(OpKind kind) {
    return kind == OpKind::kAllReduce || kind == OpKind::kReduce || kind == OpKind::kReduceScatter;
  }
  void require_reduction(const OpHeader& header) const;
  /// The type in which the engine reduces parts of `dtype`; nothing: it cannot.
  std::optional<DType> engine_type(DType dtype, ReduceOp op) const;

  /// `count` elements in place; engines ignore const.
  at::Tensor view(const void* data, int64_t count, DType dtype) const {
    const auto options = at::TensorOptions(to_scalar_type(dtype)).device(kind_.device);
    if (count == 0) return at::empty({0}, options);
    return at::for_blob(const_cast<void*>(data), {count})
        .options(options)
        .target_device(kind_.device)
        .make_tensor();
  }
  at::Tensor bytes(const void* data, int64_t count, DType dtype) const {  // that only move
    return view(data, count * size_of(dtype), DType::kUint8);
  }
  at::Tensor parts(const void* data, int64_t count, DType dtype) const {  // that are reduced
    const Parts of = parts_of(dtype);
    return view(data, count * of.each, of.dtype);
  }

  /// Replaces `values`, parts of `dtype`, by their reduction.
  void reduce_all(const at::Tensor& values, DType dtype, ReduceOp op, const Waiting& waiting);
  void divide(const at::Tensor& values, ReduceOp op) const {
    if (op != ReduceOp::kAvg) return;
    if (at::isIntegralType(values.scalar_type(), /*includeBool=*/true)) {
      values.div_(spec_.size, "trunc");
    } else {
      values.div_(spec_.size);
    }
  }
  void scatter_sum(const at::Tensor& all, const at::Tensor& own, DType dtype, ReduceOp op,
                   const Waiting& waiting);
  const GroupSpec spec_;
  const std::unique_ptr<GroupImpl> host_;
  const EngineKind kind_;
  const std::string device_;
  std::unique_ptr<DeviceEngine> engine_;
  std::optional<c10::Stream> stream_;
  CallsInFlight in_flight_{[this] { abort(); }};  // ends before the engine
  OpHeader header_;
  uint64_t sequence_ = 0;
};

std::optional<DType> DeviceGroup::engine_type(DType dtype, ReduceOp op) const {
  return kind_.reduced_as(parts_of(dtype).dtype, engine_op(dtype, op));
}

/// All ranks throw alike, because their libraries reduce the same types.
void DeviceGroup::require_reduction(const OpHeader& header) const {
  if (is_bitwise(op_on_parts(header.dtype, header.op))) return;
  DType dtype = header.dtype;
  if ((header.op == ReduceOp::kMin || header.op == ReduceOp::kMax) && is_floating(dtype)) {
    dtype = dtype == DType::kFloat64 ? DType::kInt64 : DType::kInt32;  // see ordered_keys()
  }
  if (engine_type(dtype, header.op)) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: {} on {} does not reduce {}; it reduces {}. Convert the tensor to one "
                  "of them, or call with a copy on the CPU, where native takes every type",
                  to_string(header.kind), kind_.name, device_, to_string(header.dtype),
                  kind_.reduces));
}

void DeviceGroup::require_equal_headers(const Waiting& waiting) {
  std::vector<OpHeader> all(static_cast<size_t>(spec_.size));
  Waiting in_host = waiting;
  in_host.on_device = false;
  in_host.order = nullptr;
  host_->all_gather(&header_, all.data(), sizeof header_, DType::kUint8, in_host);
  for (int rank = 1; rank < spec_.size; ++rank) {
    const auto difference =
        mismatch(all[0], spec_.rank_name(0), all[static_cast<size_t>(rank)], spec_.rank_name(rank));
    if (difference) throw Error(ErrorCode::kMismatch, *difference);
  }
}

/// All ranks learn all counts and name the same pair.
void DeviceGroup::require_equal_counts(const Exchange& exchange, const Waiting& waiting) {
  const auto size = static_cast<size_t>(spec_.size);
  std::vector<int64_t> own;
  for (const auto& block : exchange.sends) own.push_back(block.count);
  for (const auto& block : exchange.receives) own.push_back(block.count);
  std::vector<int64_t> all(own.size() * size);
  Waiting in_host = waiting;
  in_host.on_device = false;
  in_host.order = nullptr;
  host_->all_gather(own.data(), all.data(), static_cast<int64_t>(own.size()), DType::kInt64,
                    in_host);
  for (size_t from = 0; from < size; ++from) {
    for (size_t to = 0; to < size; ++to) {
      const int64_t sent = all[from * 2 * size + to];
      const int64_t wanted = all[to * 2 * size + size + from];
      if (sent == wanted) continue;
      throw Error(ErrorCode::kMismatch,
                  uneven(header_, spec_.rank_name(static_cast<int>(from)), sent,
                         spec_.rank_name(static_cast<int>(to)), wanted));
    }
  }
}

void DeviceGroup::reduce_all(const at::Tensor& values, DType dtype, ReduceOp op,
                             const Waiting& waiting) {
  const ReduceOp reduction = op_on_parts(dtype, op);
  if (is_bitwise(reduction)) {
    const at::Tensor own = values.view(at::kByte);
    const at::Tensor all = at::empty({spec_.size * own.numel()}, own.options());
    engine_->all_gather(own, all, call(waiting));
    own.copy_(all.narrow(0, 0, own.numel()));
    for (int rank = 1; rank < spec_.size; ++rank) {
      const at::Tensor theirs = all.narrow(0, rank * own.numel(), own.numel());
      if (reduction == ReduceOp::kBand) {
        own.bitwise_and_(theirs);
      } else if (reduction == ReduceOp::kBor) {
        own.bitwise_or_(theirs);
      } else {
        own.bitwise_xor_(theirs);
      }
    }
    return;
  }
  if ((op == ReduceOp::kMin || op == ReduceOp::kMax) && values.is_floating_point()) {
    const at::Tensor wide =
        values.to(values.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    const at::Tensor keys = ordered_keys(wide, op == ReduceOp::kMax);
    const DType key = keys.scalar_type() == at::kInt ? DType::kInt32 : DType::kInt64;
    reduce_all(keys, key, op, waiting);
    values.copy_(turned_negative(keys).view(wide.scalar_type()));
    return;
  }
  const DType part = parts_of(dtype).dtype;
  const DType as = engine_type(dtype, op).value_or(part);
  const bool widened = as != part;
  const at::Tensor sums = widened ? values.to(to_scalar_type(as)) : values;
  engine_->all_reduce(sums, engine_op(dtype, op), call(waiting));
  if (widened) values.copy_(sums);
  divide(values, op);
}

void DeviceGroup::scatter_sum(const at::Tensor& all, const at::Tensor& own, DType dtype,
                              ReduceOp op, const Waiting& waiting) {
  const DType part = parts_of(dtype).dtype;
  const bool by_keys = all.is_floating_point() && (op == ReduceOp::kMin || op == ReduceOp::kMax);
  const bool direct = kind_.has_reduce_scatter && !is_bitwise(op_on_parts(dtype, op)) && !by_keys &&
                      engine_type(dtype, op) == part;
  if (!direct) {
    const at::Tensor copy = all.clone();
    reduce_all(copy, dtype, op, waiting);
    own.copy_(copy.narrow(0, spec_.rank * own.numel(), own.numel()));
    return;
  }
  engine_->reduce_scatter(all, own, engine_op(dtype, op), call(waiting));
  divide(own, op);
}

void DeviceGroup::exchange(const Exchange& exchange, const void* in, void* out,
                           const Waiting& waiting) {
  if (!waiting.on_device) return host_->exchange(exchange, in, out, waiting);
  on_device(header_of(exchange), waiting, [&] {
    if (!exchange.even()) require_equal_counts(exchange, waiting);
    const at::Tensor whole_in = bytes(in, exchange.in_count(), exchange.dtype);
    const at::Tensor whole_out = bytes(out, exchange.out_count(), exchange.dtype);
    const auto blocks = [&](const at::Tensor& whole, const std::vector<ExchangeBlock>& places) {
      const int64_t size = size_of(exchange.dtype);
      std::vector<at::Tensor> cut;
      for (const ExchangeBlock& block : places) {
        const int64_t from = block.count > 0 ? block.offset * size : 0;
        cut.push_back(whole.narrow(0, from, block.count * size));
      }
      return cut;
    };
    engine_->all_to_all(blocks(whole_in, exchange.sends), blocks(whole_out, exchange.receives),
                        call(waiting));
  });
}

}  // namespace

std::unique_ptr<GroupImpl> make_device_group(const GroupSpec& spec, std::unique_ptr<GroupImpl> host,
                                             EngineKind kind) {
  return std::make_unique<DeviceGroup>(spec, std::move(host), std::move(kind));
}

}  // namespace lockstep::inline internal
