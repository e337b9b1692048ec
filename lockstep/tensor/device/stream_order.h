#pragma once
// The order between collectives, which other threads run, and the work in a device's streams:
// events instead of waits of the host.

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/device_order.h"
#include "lockstep/deadline.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// The present end of the current stream of `device` in the calling thread. Threads: any.
class DeviceEvent {
 public:
  explicit DeviceEvent(c10::Device device);
  /// Later work of the calling thread's current stream waits for it; the thread does not.
  void block_stream() const;
  bool has_passed() const { return event_.query(); }
  /// Returns true when the device has come to it, or false at the deadline.
  bool await(Deadline deadline) const;

 private:
  c10::Device device_;
  c10::Event event_;
};

/// A stream of `device` beside the programs' own, of those that libtorch keeps. The current one, if
/// the device has no such streams.
c10::Stream side_stream(c10::Device device);

/// The allocator gives the memory of `tensor` to nobody else before the calling thread's current
/// stream has done what it holds so far.
void keep_for_stream(const at::Tensor& tensor, c10::Stream stream);

/// A collective that works on its tensors where they are. It begins after the work so far of the
/// caller's current stream.
class StreamOrder final : public DeviceOrder {
 public:
  /// All on one device.
  explicit StreamOrder(std::vector<at::Tensor> tensors);

  /// In the thread that runs the collective, before and after: for its current stream.
  void enter_stream() const;
  void leave_stream();
  /// When the collective has left its stream; null before.
  const std::shared_ptr<DeviceEvent>& done() const { return done_; }

  void before(Deadline) override {}
  void after() override {}
  void join() override;

 private:
  const std::vector<at::Tensor> tensors_;
  const c10::Device device_;
  const DeviceEvent ready_;
  std::shared_ptr<DeviceEvent> done_;
};

/// A collective that works on copies in host memory, page-locked if the tensors are CUDA's. Copies
/// in both directions travel on streams of their own, beside the program's work.
class HostCopies final : public DeviceOrder {
 public:
  /// A host tensor of the same sizes. `filled`: it gets the values that `tensor` has when the work
  /// so far of the caller's current stream is done. `comes_back`: after() copies it to `tensor`.
  at::Tensor add(const at::Tensor& tensor, bool filled, bool comes_back);

  /// Returns when the host tensors have their values. Errors: kTimeout.
  void before(Deadline deadline) override;
  /// Starts the copies back.
  void after() override;
  void join() override;

 private:
  struct Copy {
    at::Tensor tensor;
    at::Tensor host;
    bool comes_back;
    std::optional<DeviceEvent> event;  // of the copy to the host, then of the one back
  };
  std::vector<Copy> copies_;
};

}  // namespace lockstep::inline internal
