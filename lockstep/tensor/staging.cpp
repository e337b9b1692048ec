#include "lockstep/tensor/staging.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace lockstep {

void* Staging::host_of(const at::Tensor& tensor, bool filled, bool comes_back) {
  if (tensor.is_cpu()) return tensor.data_ptr();
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
  if (copies_.empty()) return work;
  return std::move(work).then([copies = std::move(copies_)] {
    const at::NoGradGuard no_grad;
    for (const Copy& copy : copies) {
      if (copy.comes_back) copy.tensor.copy_(copy.host);
    }
  });
}

}  // namespace lockstep
