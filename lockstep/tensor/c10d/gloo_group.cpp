#include "lockstep/tensor/c10d/gloo_group.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/checked_group.h"
#include "lockstep/comm/copy.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/comm/letters.h"
#include "lockstep/comm/private_buffer.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/tensor/dtype.h"

namespace lockstep {
namespace {

/// Where Gloo's ranks find each other: our store.
class StoreForGloo : public ::c10d::Store {
 public:
  StoreForGloo(std::shared_ptr<lockstep::Store> store, std::string prefix,
               std::chrono::milliseconds timeout)
      : Store(timeout), store_(std::move(store)), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    store_->set(prefix_ + key, std::string(value.begin(), value.end()), limit());
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const auto value = store_->get(prefix_ + key, limit());
    return {value.begin(), value.end()};
  }
  int64_t add(const std::string& key, int64_t value) override {
    return store_->add(prefix_ + key, value, limit());
  }
  bool deleteKey(const std::string& key) override { return store_->erase(prefix_ + key, limit()); }
  bool check(const std::vector<std::string>& keys) override {
    return store_->check(prefixed(keys), limit());
  }
  int64_t getNumKeys() override {
    return static_cast<int64_t>(store_->list(prefix_, limit()).size());
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    store_->wait(prefixed(keys), Deadline::after(timeout));
  }

 private:
  Deadline limit() const { return Deadline::after(getTimeout()); }
  std::vector<std::string> prefixed(const std::vector<std::string>& keys) const {
    std::vector<std::string> all;
    for (const auto& key : keys) all.push_back(prefix_ + key);
    return all;
  }

  std::shared_ptr<lockstep::Store> store_;
  std::string prefix_;
};

/// To libtorch, no time means without end.
std::chrono::milliseconds time_left(const Waiting& waiting) {
  return std::max(waiting.deadline.left(), std::chrono::milliseconds(1));
}

/// `count` elements at `data`, as they are. Gloo takes const for nothing.
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

::c10d::ReduceOp to_c10d(DType dtype, ReduceOp op) {
  switch (op_on_parts(dtype, op)) {
    case ReduceOp::kMin:
      return ::c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return ::c10d::ReduceOp::MAX;
    case ReduceOp::kProduct:
      return ::c10d::ReduceOp::PRODUCT;
    case ReduceOp::kBand:
      return ::c10d::ReduceOp::BAND;
    case ReduceOp::kBor:
      return ::c10d::ReduceOp::BOR;
    case ReduceOp::kBxor:
      return ::c10d::ReduceOp::BXOR;
    default:
      return ::c10d::ReduceOp::SUM;  // kAvg divides afterwards, kPremulSum has multiplied before
  }
}

/// Gloo's exceptions are texts.
Error from_gloo(const std::string& doing, const std::exception& error) {
  const std::string text = error.what();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  const bool late = has("imed out") || has("imeout");
  const bool lost = has("closed by peer") || has("reset by peer") || has("Broken pipe");
  const std::string line = text.substr(0, text.find('\n'));
  return Error(late   ? ErrorCode::kTimeout
               : lost ? ErrorCode::kPeerLost
                      : ErrorCode::kIo,
               fmt::format("{}: Gloo: {}", doing, line));
}

class GlooGroup final : public CheckedGroup {
 public:
  GlooGroup(const GroupSpec& spec, c10::intrusive_ptr<::c10d::ProcessGroupGloo> gloo)
      : CheckedGroup(spec), gloo_(std::move(gloo)), letters_(spec) {}

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override {
    OpHeader header = header_of(OpKind::kAllReduce, count, dtype);
    header.op = op;
    collective(header, waiting, [&] { sum(data, count, dtype, op, waiting); });
  }
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override {
    OpHeader header = header_of(OpKind::kReduce, count, dtype, root);
    header.op = op;
    // Gloo uses the buffers of all ranks; those of others than root must stay as they are.
    collective(header, waiting, [&] {
      std::vector<std::byte> copy;
      void* const place = spec_.rank == root ? data : copied(data, count * size_of(dtype), copy);
      sum(place, count, dtype, op, waiting);
    });
  }
  void broadcast(void* data, int64_t count, DType dtype, int root,
                 const Waiting& waiting) override {
    collective(header_of(OpKind::kBroadcast, count, dtype, root), waiting, [&] {
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
    OpHeader header = header_of(OpKind::kReduceScatter, count, dtype);
    header.op = op;
    collective(header, waiting, [&] {
      const int64_t bytes = count * size_of(dtype);
      std::vector<std::byte> copy;
      auto* const all = static_cast<std::byte*>(copied(in, bytes * spec_.size, copy));
      sum(all, count * spec_.size, dtype, op, waiting);
      copy_bytes(out, all + spec_.rank * bytes, bytes);
    });
  }
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override;
  void barrier(const Waiting& waiting) override {
    collective(header_of(OpKind::kBarrier, 0, DType::kUint8), waiting, [] {});
  }
  void send(const void* data, int64_t count, DType dtype, int destination, int tag,
            const Waiting& waiting) override;
  void recv(void* data, int64_t count, DType dtype, int source, int tag,
            const Waiting& waiting) override;
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override {
    std::shared_ptr<SharedBuffer> buffer;
    collective(header_of(OpKind::kAllocate, bytes, DType::kUint8), waiting,
               [&] { buffer = std::make_shared<PrivateBuffer>(bytes); });
    return buffer;
  }

 private:
  using Request = c10::intrusive_ptr<::c10d::Work>;
  /// Gloo's tags of ours: what an exchange moves, what users send.
  enum Tag : int { kExchange = 1, kEnvelope = 2, kLetter = 3 };

  static OpHeader header_of(OpKind kind, int64_t count, DType dtype, int root = 0) {
    OpHeader header;
    header.kind = kind;
    header.count = count;
    header.dtype = dtype;
    header.root = root;
    return header;
  }
  static void* copied(const void* data, int64_t bytes, std::vector<std::byte>& copy) {
    copy.resize(static_cast<size_t>(bytes));
    copy_bytes(copy.data(), data, bytes);
    return copy.data();
  }

  /// Starts what `start` starts, and waits for it.
  template <class Start>
  void finish(const Start& start, const Waiting& waiting) {
    wait_for([&] { start()->wait(time_left(waiting)); });
  }
  /// The same for collectives, which can be asked whether they are done: meanwhile looks what other
  /// ranks have met.
  template <class Start>
  void finish_collective(const Start& start, const Waiting& waiting) {
    wait_for([&] {
      const auto work = start();
      auto pause = std::chrono::microseconds(20);
      auto next_look = std::chrono::steady_clock::now() + kLook;
      while (!work->isCompleted() && !waiting.deadline.passed()) {
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, std::chrono::microseconds(500));
        if (std::chrono::steady_clock::now() < next_look) continue;
        look_for_trouble();
        next_look = std::chrono::steady_clock::now() + kLook;
      }
      work->wait(time_left(waiting));
    });
  }
  template <class Body>
  void wait_for(const Body& body) {
    try {
      body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw from_gloo(fmt::format("{} on {}", describe(header_), spec_.rank_name(spec_.rank)),
                      error);
    }
  }
  void sum(void* data, int64_t count, DType dtype, ReduceOp op, const Waiting& waiting) {
    if (count == 0) return;
    std::vector<at::Tensor> tensors = {parts_view(data, count, dtype)};
    ::c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(dtype, op);
    options.timeout = time_left(waiting);
    finish_collective([&] { return gloo_->allreduce(tensors, options); }, waiting);
    if (op == ReduceOp::kAvg) divide(data, count, dtype, spec_.size);
  }
  void check_call(const OpHeader& header) const override {
    const bool reduces = header.kind == OpKind::kAllReduce || header.kind == OpKind::kReduce ||
                         header.kind == OpKind::kReduceScatter;
    if (!reduces || gloo_reduces(header.dtype, header.op)) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the back end c10d:gloo has no {} of {}", to_string(header.kind),
                            to_string(header.op), to_string(header.dtype)));
  }
  void greatest(int64_t* values, int count, const Waiting& waiting) override {
    sum(values, count, DType::kInt64, ReduceOp::kMax, waiting);
  }
  Request start_send(const void* data, int64_t bytes, int peer, int tag) {
    std::vector<at::Tensor> tensors = {bytes_view(data, bytes, DType::kUint8)};
    return gloo_->send(tensors, peer, tag);
  }
  Request start_recv(void* data, int64_t bytes, int peer, int tag) {
    std::vector<at::Tensor> tensors = {bytes_view(data, bytes, DType::kUint8)};
    return gloo_->recv(tensors, peer, tag);
  }
  void require_equal_counts(const Exchange& exchange, const Waiting& waiting);

  const c10::intrusive_ptr<::c10d::ProcessGroupGloo> gloo_;
  Letters letters_;
};

/// Everyone learns all counts; who finds a difference says so, and all find the same one first.
void GlooGroup::require_equal_counts(const Exchange& exchange, const Waiting& waiting) {
  const auto size = static_cast<size_t>(spec_.size);
  std::vector<int64_t> table(2 * size * size, 0);
  for (size_t rank = 0; rank < size; ++rank) {
    const auto row = static_cast<size_t>(spec_.rank) * size;
    table[row + rank] = exchange.sends[rank].count;
    table[size * size + row + rank] = exchange.receives[rank].count;
  }
  greatest(table.data(), static_cast<int>(table.size()), waiting);
  for (size_t from = 0; from < size; ++from) {
    for (size_t to = 0; to < size; ++to) {
      const int64_t sent = table[from * size + to];
      const int64_t expected = table[size * size + to * size + from];
      if (sent == expected) continue;
      throw Error(ErrorCode::kMismatch,
                  fmt::format("{}: {} sends {} elements to {}, which expects {}", describe(header_),
                              spec_.rank_name(static_cast<int>(from)), sent,
                              spec_.rank_name(static_cast<int>(to)), expected));
    }
  }
}

void GlooGroup::exchange(const Exchange& exchange, const void* in, void* out,
                         const Waiting& waiting) {
  const auto header =
      header_of(op_kind(exchange.kind), exchange.count, exchange.dtype, exchange.root);
  const int64_t size = size_of(exchange.dtype);
  collective(header, waiting, [&] {
    if (!exchange.even()) require_equal_counts(exchange, waiting);
    std::vector<Request> requests;
    for (int rank = 0; rank < spec_.size; ++rank) {
      const auto& sent = exchange.sends[static_cast<size_t>(rank)];
      const auto& received = exchange.receives[static_cast<size_t>(rank)];
      const auto* const from = static_cast<const std::byte*>(in) + sent.offset * size;
      auto* const to = static_cast<std::byte*>(out) + received.offset * size;
      if (rank == spec_.rank) {
        if (sent.count > 0) copy_bytes(to, from, sent.count * size);
        continue;
      }
      wait_for([&] {
        if (received.count > 0) {
          requests.push_back(start_recv(to, received.count * size, rank, kExchange));
        }
        if (sent.count > 0)
          requests.push_back(start_send(from, sent.count * size, rank, kExchange));
      });
    }
    for (const auto& request : requests) {
      wait_for([&] { request->wait(time_left(waiting)); });
    }
  });
}

void GlooGroup::send(const void* data, int64_t count, DType dtype, int destination, int tag,
                     const Waiting& waiting) {
  const Envelope envelope{.count = count, .tag = tag, .dtype = dtype};
  try {
    finish([&] { return start_send(&envelope, sizeof envelope, destination, kEnvelope); }, waiting);
    if (count == 0) return;
    finish([&] { return start_send(data, envelope.bytes(), destination, kLetter); }, waiting);
  } catch (const Error& error) {
    throw_agreed(error, false);
  }
}

void GlooGroup::recv(void* data, int64_t count, DType dtype, int source, int tag,
                     const Waiting& waiting) {
  const auto next = [&](void* to, int64_t bytes, Tag kind) {
    if (bytes > 0) finish([&] { return start_recv(to, bytes, source, kind); }, waiting);
  };
  try {
    letters_.take(
        spec_, source, {.count = count, .tag = tag, .dtype = dtype}, data,
        [&](Envelope& envelope) { next(&envelope, sizeof envelope, kEnvelope); },
        [&](void* to, int64_t bytes) { next(to, bytes, kLetter); });
  } catch (const Error& error) {
    throw_agreed(error, false);
  }
}

}  // namespace

bool gloo_is_built_in(std::string*) {
  return true;
}

std::unique_ptr<GroupImpl> make_gloo_group(const GroupSpec& spec, Deadline deadline) {
  using ::c10d::ProcessGroupGloo;
  const auto options = ProcessGroupGloo::Options::create(spec.timeout);
  options->threads = 2;
  try {
    options->devices.push_back(
        ProcessGroupGloo::createDeviceForHostname(spec.addresses[static_cast<size_t>(spec.rank)]));
    auto store =
        c10::make_intrusive<StoreForGloo>(spec.store, spec.name + "/gloo/", deadline.left());
    auto gloo = c10::make_intrusive<ProcessGroupGloo>(store, spec.rank, spec.size, options);
    return std::make_unique<GlooGroup>(spec, std::move(gloo));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw from_gloo("creating the process group", error);
  }
}

}  // namespace lockstep
