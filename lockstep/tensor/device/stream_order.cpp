#include "lockstep/tensor/device/stream_order.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "lockstep/base/mutex.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

c10::impl::VirtualGuardImpl device_impl(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

c10::Stream current_stream(c10::Device device) {
  return device_impl(device).getStream(device);
}

/// The streams of all copies of this process from and to a device: they share its copy engines.
struct CopyStreams {
  c10::Stream to_host;
  c10::Stream back;
};

CopyStreams copy_streams(c10::Device device) {
  static Mutex mutex;
  static auto& of_devices = *new std::map<std::pair<int, int>, CopyStreams>;  // never destroyed
  const MutexLock lock(mutex);
  const std::pair key{static_cast<int>(device.type()), static_cast<int>(device.index())};
  const auto found = of_devices.find(key);
  if (found != of_devices.end()) return found->second;
  const CopyStreams made{side_stream(device), side_stream(device)};
  return of_devices.emplace(key, made).first->second;
}

}  // namespace

DeviceEvent::DeviceEvent(c10::Device device) : device_(device), event_(device.type()) {
  event_.record(current_stream(device));
}

void DeviceEvent::block_stream() const {
  event_.block(current_stream(device_));
}

bool DeviceEvent::await(Deadline deadline) const {
  constexpr auto kPause = std::chrono::microseconds(20);
  while (!has_passed()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

c10::Stream side_stream(c10::Device device) {
  try {
    return device_impl(device).getStreamFromGlobalPool(device);
  } catch (const c10::Error&) {  // no pool
    return current_stream(device);
  }
}

void keep_for_stream(const at::Tensor& tensor, c10::Stream stream) {
  device_impl(tensor.device()).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

StreamOrder::StreamOrder(std::vector<at::Tensor> tensors)
    : tensors_(std::move(tensors)), device_(tensors_.front().device()), ready_(device_) {}

void StreamOrder::enter_stream() const {
  ready_.block_stream();
}

void StreamOrder::leave_stream() {
  const auto stream = current_stream(device_);
  for (const auto& tensor : tensors_) keep_for_stream(tensor, stream);
  done_ = std::make_shared<DeviceEvent>(device_);
}

void StreamOrder::join() {
  if (done_) done_->block_stream();
}

at::Tensor HostCopies::add(const at::Tensor& tensor, bool filled, bool comes_back) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU);
  Copy copy{tensor.detach(), at::empty(tensor.sizes(), options.pinned_memory(tensor.is_cuda())),
            comes_back, std::nullopt};
  if (filled) {
    const DeviceEvent ready(tensor.device());
    const c10::StreamGuard guard(copy_streams(tensor.device()).to_host);
    ready.block_stream();
    copy.host.copy_(copy.tensor, /*non_blocking=*/true);
    keep_for_stream(copy.tensor, guard.current_stream());
    copy.event.emplace(tensor.device());
  } else {
    copy.event.emplace(tensor.device());  // the copy back comes after the work so far
  }
  copies_.push_back(std::move(copy));
  return copies_.back().host;
}

void HostCopies::before(Deadline deadline) {
  for (const Copy& copy : copies_) {
    if (copy.event->await(deadline)) continue;
    throw Error(ErrorCode::kTimeout,
                fmt::format("the work of {} that computes the values to send did not end in time",
                            copy.tensor.device().str()));
  }
}

void HostCopies::after() {
  const at::NoGradGuard no_grad;
  for (Copy& copy : copies_) {
    if (!copy.comes_back) continue;
    const c10::StreamGuard guard(copy_streams(copy.tensor.device()).back);
    copy.tensor.copy_(copy.host, /*non_blocking=*/true);
    keep_for_stream(copy.tensor, guard.current_stream());
    copy.event.emplace(copy.tensor.device());
  }
}

void HostCopies::join() {
  for (const Copy& copy : copies_) {
    if (copy.comes_back) copy.event->block_stream();
  }
}

}  // namespace lockstep::inline internal
