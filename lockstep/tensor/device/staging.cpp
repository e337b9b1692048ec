#include "lockstep/tensor/device/staging.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace lockstep::inline internal {

bool stay_on_device(const ProcessGroup& group, std::span<const at::Tensor> tensors, ReduceOp op) {
  const auto device = device_of(group);
  if (!device || op == ReduceOp::kPremulSum) return false;
  bool any = false;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (tensor.device() != *device) return false;
    any = true;
  }
  return any;
}

void await_stream(c10::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

Staging::Staging(const ProcessGroup& group, std::initializer_list<at::Tensor> tensors,
                 const CollectiveOptions& options, ReduceOp op)
    : options_(options), has_order_(true) {
  options_.on_device = stay_on_device(group, std::span(tensors.begin(), tensors.size()), op);
  if (!options_.on_device || tensors.begin()->is_cpu()) return;
  options_.order = std::make_shared<StreamOrder>(std::vector<at::Tensor>(tensors));
}

void* Staging::host_of(const at::Tensor& tensor, bool filled, bool comes_back) {
  if (tensor.is_cpu() || options_.on_device) {
    in_place_.push_back(tensor);
    return tensor.data_ptr();
  }
  if (has_order_) {
    if (!ordered_copies_) options_.order = ordered_copies_ = std::make_shared<HostCopies>();
    return ordered_copies_->add(tensor, filled, comes_back).data_ptr();
  }
  const at::NoGradGuard no_grad;
  at::Tensor host = at::empty(tensor.sizes(), at::TensorOptions()
                                                  .dtype(tensor.scalar_type())
                                                  .device(at::kCPU)
                                                  .pinned_memory(tensor.is_cuda()));
  if (filled) host.copy_(tensor.detach());
  void* const data = host.data_ptr();
  copies_.push_back({tensor.detach(), std::move(host), comes_back});
  return data;
}

Work Staging::finish(Work work) && {
  if (copies_.empty() && !options_.order && work.done()) return work;
  return std::move(work).then([copies = std::move(copies_), in_place = std::move(in_place_),
                               order = std::move(options_.order)] {
    if (order) order->join();
    const at::NoGradGuard no_grad;
    for (const Copy& copy : copies) {
      if (copy.comes_back) copy.tensor.copy_(copy.host);
    }
  });
}

}  // namespace lockstep::inline internal
