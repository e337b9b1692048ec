#include "lockstep/batch.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// CUDA's copy of pageable memory waits all the same. Other devices' need not.
at::Tensor moved(const at::Tensor& tensor, at::Device device) {
  return tensor.to(tensor.options().device(device), /*non_blocking=*/device.is_cuda());
}

/// An expanded tensor gets memory of its own first.
at::Tensor pinned(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != at::kStrided) return tensor;
  return tensor.contiguous().pin_memory();
}

/// (N, C, H, W): `values`, (C, 256), at the bytes (N, H, W, C). Looked up, so that the bits are the
/// same on every device. One channel at a time: an index takes 8 bytes for each number.
at::Tensor looked_up(const at::Tensor& bytes, const at::Tensor& values) {
  const int64_t channels = values.size(0);
  TORCH_CHECK(bytes.dim() == 4 && bytes.size(3) == channels, "images of bytes are (N, H, W, ",
              channels, ") for byte_values of ", channels, " channels, not ", bytes.sizes());
  auto out = at::empty({bytes.size(0), channels, bytes.size(1), bytes.size(2)}, values.options());
  for (int64_t c = 0; c < channels; ++c) {
    out.select(1, c).copy_(values.select(0, c).take(bytes.select(3, c).to(at::kLong)));
  }
  return out;
}

}  // namespace

Tensors Batch::inputs() const {
  const auto names = more_inputs.names();
  Tensors all;
  all.add(images_name, images);
  for (size_t i = 0; i < more_inputs.size(); ++i) all.add(names[i], more_inputs[i]);
  return all;
}

void Batch::set_inputs(const Tensors& inputs) {
  const auto names = inputs.names();
  Tensors more;
  for (size_t i = 1; i < inputs.size(); ++i) more.add(names[i], inputs[i]);
  images = inputs.empty() ? at::Tensor() : inputs.front();
  images_name = inputs.empty() ? "" : names.front();
  more_inputs = std::move(more);
}

Tensors Batch::inputs_on(at::Device device) const {
  Tensors all = inputs();
  for (auto& input : all) input = moved(input, device);
  if (byte_values.defined()) all.front() = looked_up(all.front(), moved(byte_values, device));
  return all;
}

void Batch::move_to(at::Device device) {
  set_inputs(inputs_on(device));
  byte_values = at::Tensor();
  for (auto& column : targets) column = moved(column, device);
}

void Batch::pin() {
  images = pinned(images);
  for (auto* columns : {&targets, &more_inputs}) {
    for (auto& column : *columns) column = pinned(column);
  }
}

at::Tensor indices_of(const BatchRows& rows) {
  auto indices = at::empty({std::ssize(rows.samples)}, at::kLong);
  std::copy(rows.samples.begin(), rows.samples.end(), indices.data_ptr<int64_t>());
  return indices;
}

}  // namespace lockstep
