#include "lockstep/tensor/hccl/hccl_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/comm/checked_group.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/staging.h"
#include "lockstep/tensor/hccl/library.h"

namespace lockstep::hccl {
namespace {

/// After this long a wait asks whether the communicator has failed.
constexpr std::chrono::milliseconds kAskEvery{100};

void check(const Functions& functions, int error, const std::string& doing) {
  if (error == kSuccess) return;
  throw Error(ErrorCode::kIo, fmt::format("{}: HCCL: {}", doing, describe(functions, error)));
}

DataType data_type(at::ScalarType type) {
  switch (type) {
    case at::kInt:
      return kInt32;
    case at::kHalf:
      return kFloat16;
    case at::kBFloat16:
      return kBFloat16;
    case at::kFloat:
      return kFloat32;
    default:
      return kInt8;  // bytes that only move
  }
}

Reduction reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return kMin;
    case ReduceOp::kMax:
      return kMax;
    case ReduceOp::kProduct:
      return kProduct;
    default:
      return kSum;
  }
}

/// Rank 0's root info, or its error, as the others read it.
RootInfo meet(const Functions& functions, const GroupSpec& spec, Deadline deadline) {
  const std::string key = spec.name + "/hccl/root";
  RootInfo root{};
  if (spec.rank == 0) {
    const int error = functions.HcclGetRootInfo(&root);
    std::string value(1, error == kSuccess ? 'i' : 'e');
    value += error == kSuccess ? std::string(root.internal, sizeof root.internal)
                               : describe(functions, error);
    if (spec.store) spec.store->set(key, value, deadline);
    check(functions, error, "HcclGetRootInfo on " + spec.rank_name(0));
    return root;
  }
  const std::string value = spec.store->get(key, deadline);
  if (value.size() != sizeof root.internal + 1 || value[0] != 'i') {
    throw Error(ErrorCode::kIo, fmt::format("HcclGetRootInfo on {}: HCCL: {}", spec.rank_name(0),
                                            value.empty() ? value : value.substr(1)));
  }
  std::memcpy(root.internal, value.data() + 1, sizeof root.internal);
  return root;
}

/// HCCL waits for ranks as long as HCCL_CONNECT_TIMEOUT says: so a thread does, which is left to
/// the process if that is longer than the deadline.
Comm join(const Functions& functions, const GroupSpec& spec, int index, const RootInfo& root,
          Deadline deadline) {
  struct Joined {
    int error;
    Comm comm;
  };
  std::packaged_task<Joined()> task(
      [&functions, size = spec.size, rank = spec.rank, index, root]() -> Joined {
        Comm comm = nullptr;
        int error = functions.aclrtSetDevice(index);
        if (error == kSuccess) {
          error = functions.HcclCommInitRootInfo(static_cast<uint32_t>(size), &root,
                                                 static_cast<uint32_t>(rank), &comm);
        }
        return {error, comm};
      });
  auto joined = task.get_future();
  std::thread(std::move(task)).detach();
  const auto doing = fmt::format("HcclCommInitRootInfo on {}", spec.rank_name(spec.rank));
  if (joined.wait_for(deadline.left()) != std::future_status::ready) {
    throw Error(ErrorCode::kTimeout, doing +
                                         ": HCCL did not connect the ranks in time, though "
                                         "every rank had begun");
  }
  const Joined result = joined.get();
  check(functions, result.error, doing);
  return result.comm;
}

class HcclEngine final : public DeviceEngine {
 public:
  HcclEngine(const Functions& functions, const GroupSpec& spec, int index, c10::Device device,
             Deadline deadline)
      : functions_(functions), rank_(spec.rank), size_(spec.size), index_(index), device_(device) {
    const auto doing = fmt::format("NPU {} of {}", index, spec.rank_name(rank_));
    check(functions_, functions_.aclrtSetDevice(index), doing + ": aclrtSetDevice");
    comm_ = join(functions_, spec, index, meet(functions_, spec, deadline), deadline);
    // All ranks have read it.
    if (rank_ == 0 && spec.store) spec.store->erase(spec.name + "/hccl/root", deadline);
    check(functions_, functions_.aclrtCreateStream(&stream_), doing + ": aclrtCreateStream");
  }
  /// HCCL would wait for ranks that have failed: then it is left to the process.
  ~HcclEngine() override {
    if (failed_) {
      orphaned_.leave_to_process();
      return;
    }
    functions_.aclrtSetDevice(index_);
    functions_.HcclCommDestroy(comm_);
    functions_.aclrtDestroyStream(stream_);
  }

  void all_reduce(const at::Tensor& values, ReduceOp op, const EngineCall& call) override {
    run({values, values}, call, "HcclAllReduce", [&] {
      return functions_.HcclAllReduce(values.data_ptr(), values.data_ptr(), count_of(values),
                                      data_type(values.scalar_type()), reduction(op), comm_,
                                      stream_);
    });
  }
  void reduce_scatter(const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                      const EngineCall& call) override {
    run({in, out}, call, "HcclReduceScatter", [&] {
      return functions_.HcclReduceScatter(in.data_ptr(), out.data_ptr(), count_of(out),
                                          data_type(in.scalar_type()), reduction(op), comm_,
                                          stream_);
    });
  }
  void broadcast(const at::Tensor& bytes, int root, const EngineCall& call) override {
    run({bytes, bytes}, call, "HcclBroadcast", [&] {
      return functions_.HcclBroadcast(bytes.data_ptr(), count_of(bytes), kInt8,
                                      static_cast<uint32_t>(root), comm_, stream_);
    });
  }
  void all_gather(const at::Tensor& in, const at::Tensor& out, const EngineCall& call) override {
    run({in, out}, call, "HcclAllGather", [&] {
      return functions_.HcclAllGather(in.data_ptr(), out.data_ptr(), count_of(in), kInt8, comm_,
                                      stream_);
    });
  }
  void all_to_all(std::span<const at::Tensor> sends, std::span<const at::Tensor> receives,
                  const EngineCall& call) override;
  void abort() noexcept override {
    failed_ = true;
    functions_.aclrtSetDevice(index_);
    if (functions_.aclrtStreamAbort != nullptr) functions_.aclrtStreamAbort(stream_);
  }

 private:
  using Tensors = std::vector<at::Tensor>;

  static uint64_t count_of(const at::Tensor& tensor) {
    return static_cast<uint64_t>(tensor.numel());
  }
  /// Queues what `start` queues, once the tensors are ready, and waits until it has ended.
  template <class Start>
  void run(Tensors tensors, const EngineCall& call, const char* function, const Start& start) {
    check(functions_, functions_.aclrtSetDevice(index_), call.text() + ": aclrtSetDevice");
    await_stream(device_);
    try {
      check(functions_, start(), fmt::format("{}: {}", call.text(), function));
      wait(call);
    } catch (...) {
      orphaned_.keep(std::make_shared<Tensors>(std::move(tensors)));  // it may still use them
      throw;
    }
  }
  void wait(const EngineCall& call) const;
  int swap_pieces(int peer, const at::Tensor& sent, const at::Tensor& received) const;

  const Functions& functions_;
  const int rank_;
  const int size_;
  const int index_;
  const c10::Device device_;
  Comm comm_ = nullptr;
  Stream stream_ = nullptr;
  std::atomic<bool> failed_ = false;  // abort() comes from any thread
  OrphanedBuffers orphaned_;
};

void HcclEngine::wait(const EngineCall& call) const {
  while (true) {
    const auto slice = std::min(call.deadline.left(), kAskEvery);
    const int error =
        functions_.aclrtSynchronizeStreamWithTimeout(stream_, static_cast<int32_t>(slice.count()));
    if (error == kSuccess) break;
    int failure = kSuccess;
    check(functions_, functions_.HcclGetCommAsyncError(comm_, &failure), call.text());
    check(functions_, failure, call.text());
    if (error != kSyncTimeout) check(functions_, error, call.text());
    if (call.deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  call.text() + ": HCCL did not end it in time, though every rank had begun");
    }
  }
}

/// The lower rank sends first.
int HcclEngine::swap_pieces(int peer, const at::Tensor& sent, const at::Tensor& received) const {
  const auto send = [&] {
    if (sent.numel() == 0) return kSuccess;
    return functions_.HcclSend(sent.data_ptr(), count_of(sent), kInt8, static_cast<uint32_t>(peer),
                               comm_, stream_);
  };
  const auto receive = [&] {
    if (received.numel() == 0) return kSuccess;
    return functions_.HcclRecv(received.data_ptr(), count_of(received), kInt8,
                               static_cast<uint32_t>(peer), comm_, stream_);
  };
  const int error = rank_ < peer ? send() : receive();
  if (error != kSuccess) return error;
  return rank_ < peer ? receive() : send();
}

/// In round r, ranks whose sum is r modulo the size are a pair. Every rank is in one pair a round,
/// and every two ranks meet once.
void HcclEngine::all_to_all(std::span<const at::Tensor> sends, std::span<const at::Tensor> receives,
                            const EngineCall& call) {
  const auto own = static_cast<size_t>(rank_);
  if (receives[own].numel() > 0 && receives[own].data_ptr() != sends[own].data_ptr()) {
    receives[own].copy_(sends[own]);
  }
  Tensors all(sends.begin(), sends.end());
  all.insert(all.end(), receives.begin(), receives.end());
  run(std::move(all), call, "HcclSend or HcclRecv", [&] {
    for (int round = 0; round < size_; ++round) {
      const int peer = (round - rank_ + size_) % size_;
      if (peer == rank_) continue;
      const auto at = static_cast<size_t>(peer);
      if (const int error = swap_pieces(peer, sends[at], receives[at])) return error;
    }
    return kSuccess;
  });
}

/// Ascend910A and its kin ("Ascend910", "Ascend910ProB") are the Atlas training series.
bool has_bfloat16(const Functions& functions) {
  const char* const name = functions.aclrtGetSocName();
  const std::string_view soc = name == nullptr ? "" : name;
  return soc.starts_with("Ascend910B") || soc.starts_with("Ascend910_93") ||
         soc.starts_with("Ascend950");
}

std::optional<DType> reduced_by_hccl(DType dtype, ReduceOp op, bool bfloat16) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return DType::kInt32;
    case DType::kBFloat16:
      return bfloat16 && op != ReduceOp::kProduct ? DType::kBFloat16 : DType::kFloat32;
    case DType::kFloat16:
    case DType::kFloat32:
      return dtype;
    default:
      return std::nullopt;
  }
}

}  // namespace

EngineKind engine_kind(const Functions& functions, const GroupSpec& spec, int index,
                       c10::Device device) {
  const bool bfloat16 = has_bfloat16(functions);
  return {.name = "HCCL",
          .device = device,
          .reduced_as = [bfloat16](DType dtype,
                                   ReduceOp op) { return reduced_by_hccl(dtype, op, bfloat16); },
          .reduces = "bool, int8, uint8, int16, int32, float16, bfloat16, float32 and complex64",
          .make =
              [&functions, spec, index, device](Deadline deadline) {
                return std::make_unique<HcclEngine>(functions, spec, index, device, deadline);
              }};
}

}  // namespace lockstep::hccl
