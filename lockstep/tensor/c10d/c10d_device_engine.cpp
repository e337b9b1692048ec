#include "lockstep/tensor/c10d/c10d_device_engine.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/tensor/c10d/adapters.h"

namespace lockstep::inline internal {
namespace {

class C10dDeviceEngine final : public DeviceEngine {
 public:
  C10dDeviceEngine(std::string name, c10::intrusive_ptr<C10dEngine> engine, int size,
                   const C10dAbilities& abilities, std::function<void()> abort)
      : name_(std::move(name)),
        engine_(std::move(engine)),
        size_(size),
        has_flat_gather_(abilities.has_flat_gather),
        on_host_(abilities.on_host),
        abort_(std::move(abort)) {}

  void all_reduce(const at::Tensor& values, ReduceOp op, const EngineCall& call) override {
    std::vector<at::Tensor> tensors = {values};
    ::c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(op);
    finish([&] { return engine_->allreduce(tensors, options); }, call);
  }
  void reduce_scatter(const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                      const EngineCall& call) override {
    at::Tensor whole = in, part = out;
    ::c10d::ReduceScatterOptions options;
    options.reduceOp = to_c10d(op);
    finish([&] { return engine_->_reduce_scatter_base(part, whole, options); }, call);
  }
  void broadcast(const at::Tensor& bytes, int root, const EngineCall& call) override {
    std::vector<at::Tensor> tensors = {bytes};
    ::c10d::BroadcastOptions options;
    options.rootRank = root;
    finish([&] { return engine_->broadcast(tensors, options); }, call);
  }
  void all_gather(const at::Tensor& in, const at::Tensor& out, const EngineCall& call) override {
    if (has_flat_gather_) {
      at::Tensor part = in, whole = out;
      return finish([&] { return engine_->_allgather_base(whole, part); }, call);
    }
    std::vector<at::Tensor> ins = {in};
    std::vector<std::vector<at::Tensor>> outs(1);
    for (int rank = 0; rank < size_; ++rank) {
      outs[0].push_back(out.narrow(0, rank * in.numel(), in.numel()));
    }
    finish([&] { return engine_->allgather(outs, ins); }, call);
  }
  /// c10d takes and gives the pieces packed.
  void all_to_all(std::span<const at::Tensor> sends, std::span<const at::Tensor> receives,
                  const EngineCall& call) override {
    std::vector<int64_t> outgoing, incoming;
    int64_t bytes = 0;
    for (const auto& piece : sends) outgoing.push_back(piece.numel());
    for (const auto& piece : receives) {
      incoming.push_back(piece.numel());
      bytes += piece.numel();
    }
    at::Tensor packed = at::cat(at::TensorList(sends.data(), sends.size()));
    at::Tensor arrived = at::empty({bytes}, packed.options());
    finish([&] { return engine_->alltoall_base(arrived, packed, incoming, outgoing); }, call);
    int64_t at = 0;
    for (const auto& piece : receives) {
      if (piece.numel() > 0) piece.copy_(arrived.narrow(0, at, piece.numel()));
      at += piece.numel();
    }
  }
  void abort() noexcept override {
    try {
      abort_();
    } catch (const std::exception&) {  // the engine is no longer usable
    }
  }

 private:
  static ::c10d::ReduceOp to_c10d(ReduceOp op) {
    return lockstep::to_c10d(DType::kFloat32, op);  // of numbers that are their own parts
  }
  /// Runs `start`. The current stream waits for its work, or this thread, on the CPU.
  template <class Start>
  void finish(const Start& start, const EngineCall& call) {
    const auto work = start();
    if (!on_host_) {
      work->wait();
      return;
    }
    while (!work->isCompleted()) {
      if (call.deadline.passed()) {
        throw Error(ErrorCode::kTimeout,
                    fmt::format("{}: {} did not end it in time, though every rank had begun",
                                call.text(), name_));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (const auto error = work->exception()) std::rethrow_exception(error);
  }

  const std::string name_;
  const c10::intrusive_ptr<C10dEngine> engine_;
  const int size_;
  const bool has_flat_gather_;
  const bool on_host_;
  const std::function<void()> abort_;
};

}  // namespace

std::unique_ptr<DeviceEngine> make_c10d_device_engine(std::string name,
                                                      c10::intrusive_ptr<C10dEngine> engine,
                                                      int size, const C10dAbilities& abilities,
                                                      std::function<void()> abort) {
  return std::make_unique<C10dDeviceEngine>(std::move(name), std::move(engine), size, abilities,
                                            std::move(abort));
}

}  // namespace lockstep::inline internal
