#include "lockstep/tensor/c10d/device_group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/where.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <thread>

#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"
#include "lockstep/tensor/c10d/adapters.h"
#include "lockstep/tensor/dtype.h"
#include "lockstep/tensor/staging.h"

namespace lockstep {
namespace {

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
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
  DeviceGroup(const GroupSpec& spec, std::unique_ptr<GroupImpl> host, std::string device,
              std::function<DeviceEngine()> make_engine)
      : spec_(spec),
        host_(std::move(host)),
        device_(std::move(device)),
        make_engine_(std::move(make_engine)) {}

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
              [&] {
                std::vector<at::Tensor> tensors = {bytes(data, count, dtype)};
                ::c10d::BroadcastOptions options;
                options.rootRank = root;
                finish([&] { return engine().broadcast(tensors, options); }, waiting);
              });
  }
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override {
    if (!waiting.on_device) return host_->all_gather(in, out, count, dtype, waiting);
    on_device({.count = count, .kind = OpKind::kAllGather, .dtype = dtype}, waiting, [&] {
      gather_all(bytes(in, count, dtype), bytes(out, count * spec_.size, dtype), waiting);
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
  bool try_send(const void* data, const Envelope& letter, int destination, CallSite site) override {
    return host_->try_send(data, letter, destination, site);
  }
  bool send(const void* data, const Envelope& letter, int destination,
            const Waiting& waiting) override {
    return host_->send(data, letter, destination, waiting);
  }
  bool receive(int source, LetterSink& sink, const Waiting& waiting) override {
    return host_->receive(source, sink, waiting);
  }
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override {
    return host_->allocate(bytes, waiting);
  }
  void give_up(const Error& error, Deadline deadline) noexcept override {
    host_->give_up(error, deadline);
  }

 private:
  C10dEngine& engine() const { return *engine_->engine; }

  /// Runs `body` once all ranks are about to run the same call.
  template <class Body>
  void on_device(OpHeader header, const Waiting& waiting, const Body& body) {
    header.sequence = ++sequence_;
    header_ = header;
    require_equal_headers(waiting);
    if (header.count == 0 && header.kind != OpKind::kAllGatherv &&
        header.kind != OpKind::kAllToAllv) {
      return;
    }
    try {
      if (!engine_) engine_ = make_engine_();
      const at::NoGradGuard no_grad;
      const c10::DeviceGuard guard(engine_->device);
      body();
      await_stream(engine_->device);
    } catch (const Error&) {
      abort();
      throw;
    } catch (const std::exception& error) {
      abort();
      const std::string text = error.what();
      throw Error(ErrorCode::kIo,
                  fmt::format("{}: {}", this_call(), text.substr(0, text.find('\n'))));
    }
  }
  void require_equal_headers(const Waiting& waiting);
  void require_equal_counts(const Exchange& exchange, const Waiting& waiting);
  std::string this_call() const {
    return fmt::format("{} on {}, {}", describe(header_), spec_.rank_name(spec_.rank), device_);
  }
  void abort() noexcept {
    try {
      if (engine_) engine_->abort();
    } catch (const std::exception&) {  // the engine is no longer usable
    }
  }

  /// `count` elements in place; c10d ignores const.
  at::Tensor view(const void* data, int64_t count, DType dtype) const {
    const auto options = at::TensorOptions(to_scalar_type(dtype)).device(engine_->device);
    if (count == 0) return at::empty({0}, options);
    return at::from_blob(const_cast<void*>(data), {count}, options);
  }
  at::Tensor bytes(const void* data, int64_t count, DType dtype) const {  // that only move
    return view(data, count * size_of(dtype), DType::kUint8);
  }
  at::Tensor parts(const void* data, int64_t count, DType dtype) const {  // that are reduced
    const Parts of = parts_of(dtype);
    return view(data, count * of.each, of.dtype);
  }

  /// Runs `start`, and waits until its work has ended on the device.
  template <class Start>
  void finish(const Start& start, const Waiting& waiting) {
    const auto work = start();
    while (!work->isCompleted()) {
      if (waiting.deadline.passed()) {
        throw Error(ErrorCode::kTimeout,
                    fmt::format("{}: {} did not end it in time, though every rank had begun",
                                this_call(), engine_->name));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (const auto error = work->exception()) std::rethrow_exception(error);
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
  void gather_all(const at::Tensor& in, const at::Tensor& out, const Waiting& waiting) {
    std::vector<at::Tensor> ins = {in};
    std::vector<std::vector<at::Tensor>> outs(1);
    for (int rank = 0; rank < spec_.size; ++rank) {
      outs[0].push_back(out.narrow(0, rank * in.numel(), in.numel()));
    }
    finish([&] { return engine().allgather(outs, ins); }, waiting);
  }

  const GroupSpec spec_;
  const std::unique_ptr<GroupImpl> host_;
  const std::string device_;
  const std::function<DeviceEngine()> make_engine_;
  std::optional<DeviceEngine> engine_;
  OpHeader header_;
  uint64_t sequence_ = 0;
};

void DeviceGroup::require_equal_headers(const Waiting& waiting) {
  std::vector<OpHeader> all(static_cast<size_t>(spec_.size));
  Waiting in_host = waiting;
  in_host.on_device = false;
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
  for (const auto& piece : exchange.sends) own.push_back(piece.count);
  for (const auto& piece : exchange.receives) own.push_back(piece.count);
  std::vector<int64_t> all(own.size() * size);
  Waiting in_host = waiting;
  in_host.on_device = false;
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
    gather_all(own, all, waiting);
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
  const DType as = engine_->reduced_as(parts_of(dtype).dtype);
  const bool widened = as != parts_of(dtype).dtype;
  const at::Tensor sums = widened ? values.to(to_scalar_type(as)) : values;
  std::vector<at::Tensor> tensors = {sums};
  ::c10d::AllreduceOptions options;
  options.reduceOp = to_c10d(dtype, op);
  finish([&] { return engine().allreduce(tensors, options); }, waiting);
  if (widened) values.copy_(sums);
  divide(values, op);
}

void DeviceGroup::scatter_sum(const at::Tensor& all, const at::Tensor& own, DType dtype,
                              ReduceOp op, const Waiting& waiting) {
  const DType part = parts_of(dtype).dtype;
  const bool by_keys = all.is_floating_point() && (op == ReduceOp::kMin || op == ReduceOp::kMax);
  const bool direct = engine_->has_reduce_scatter && !is_bitwise(op_on_parts(dtype, op)) &&
                      !by_keys && engine_->reduced_as(part) == part;
  if (!direct) {
    const at::Tensor copy = all.clone();
    reduce_all(copy, dtype, op, waiting);
    own.copy_(copy.narrow(0, spec_.rank * own.numel(), own.numel()));
    return;
  }
  std::vector<at::Tensor> outs = {own};
  std::vector<std::vector<at::Tensor>> ins(1);
  for (int rank = 0; rank < spec_.size; ++rank) {
    ins[0].push_back(all.narrow(0, rank * own.numel(), own.numel()));
  }
  ::c10d::ReduceScatterOptions options;
  options.reduceOp = to_c10d(dtype, op);
  finish([&] { return engine().reduce_scatter(outs, ins, options); }, waiting);
  divide(own, op);
}

void DeviceGroup::exchange(const Exchange& exchange, const void* in, void* out,
                           const Waiting& waiting) {
  if (!waiting.on_device) return host_->exchange(exchange, in, out, waiting);
  on_device(header_of(exchange), waiting, [&] {
    if (!exchange.even()) require_equal_counts(exchange, waiting);
    const int64_t size = size_of(exchange.dtype);
    std::vector<int64_t> sends, receives;
    std::vector<at::Tensor> pieces;
    int64_t incoming = 0;
    for (int rank = 0; rank < spec_.size; ++rank) {
      const Piece& sent = exchange.sends[static_cast<size_t>(rank)];
      const auto* const from = static_cast<const std::byte*>(in) + sent.offset * size;
      pieces.push_back(bytes(from, sent.count, exchange.dtype));
      sends.push_back(sent.count * size);
      receives.push_back(exchange.receives[static_cast<size_t>(rank)].count * size);
      incoming += receives.back();
    }
    at::Tensor outgoing = at::cat(pieces);
    at::Tensor arrived = at::empty({incoming}, outgoing.options());
    finish([&] { return engine().alltoall_base(arrived, outgoing, receives, sends); }, waiting);
    int64_t at = 0;
    for (int rank = 0; rank < spec_.size; ++rank) {
      const Piece& piece = exchange.receives[static_cast<size_t>(rank)];
      auto* const to = static_cast<std::byte*>(out) + piece.offset * size;
      const int64_t length = piece.count * size;
      if (length > 0) bytes(to, piece.count, exchange.dtype).copy_(arrived.narrow(0, at, length));
      at += length;
    }
  });
}

}  // namespace

std::unique_ptr<GroupImpl> make_device_group(const GroupSpec& spec, std::unique_ptr<GroupImpl> host,
                                             std::string device,
                                             std::function<DeviceEngine()> make_engine) {
  return std::make_unique<DeviceGroup>(spec, std::move(host), std::move(device),
                                       std::move(make_engine));
}

}  // namespace lockstep
