#pragma once
// What a library for collectives between devices (NCCL, HCCL) does for a DeviceGroup.

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// One call of an engine: how long it may take, and its text for errors.
struct EngineCall {
  Deadline deadline;
  std::function<std::string()> text;  ///< "all_reduce #3 (...) on rank 0, cuda:0".
};

/// Collectives on one device per rank. One thread at a time calls it. All ranks make the same calls
/// with equal arguments: the group has compared them. Tensors are flat, contiguous and on device();
/// those that only move are bytes.
///
/// A call takes its input after the work so far of the current stream of device(). Later work of
/// that stream sees the result. The call may return before.
///
/// Errors: kTimeout at the deadline, else std::exception with the library's text. Afterwards only
/// abort() and the destructor are called.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;

  /// `op` is kSum, kMin, kMax or kProduct; the type is one that EngineKind::reduced_as returned.
  virtual void all_reduce(const at::Tensor& values, ReduceOp op, const EngineCall& call) = 0;
  /// in: size() * n elements; out: n.
  virtual void reduce_scatter(const at::Tensor& in, const at::Tensor& out, ReduceOp op,
                              const EngineCall& call) = 0;
  virtual void broadcast(const at::Tensor& bytes, int root, const EngineCall& call) = 0;
  /// in: n bytes; out: size() * n.
  virtual void all_gather(const at::Tensor& in, const at::Tensor& out, const EngineCall& call) = 0;
  /// By rank: the block for it, and the place of its block. Blocks may be empty.
  virtual void all_to_all(std::span<const at::Tensor> sends, std::span<const at::Tensor> receives,
                          const EngineCall& call) = 0;
  /// Ends operations in progress, as far as the library can; after an error. Any thread.
  virtual void abort() noexcept = 0;
};

/// A library, and how it serves one rank of a group.
struct EngineKind {
  std::string name;    ///< "NCCL".
  c10::Device device;  ///< With its index.
  /// The type in which a type of parts_of() is reduced by kSum, kMin, kMax or kProduct: itself or a
  /// wider one. Nothing: the library cannot.
  std::function<std::optional<DType>(DType dtype, ReduceOp op)> reduced_as;
  std::string reduces = "every type";  ///< For the error: "int32, float16 and float32".
  bool has_reduce_scatter = true;      ///< If false, it is an all_reduce of a copy.
  /// Collective over the group's ranks, at the first call with memory of the device.
  std::function<std::unique_ptr<DeviceEngine>(Deadline deadline)> make;
};

}  // namespace lockstep::inline internal
