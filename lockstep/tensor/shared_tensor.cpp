#include "lockstep/collectives.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep {

at::Tensor from_shared(std::shared_ptr<SharedBuffer> buffer, int64_t offset, at::IntArrayRef sizes,
                       at::ScalarType dtype, at::IntArrayRef strides) {
  const auto element = static_cast<int64_t>(c10::elementSize(dtype));
  int64_t bytes = element;
  for (const int64_t size : sizes) bytes *= size;
  if (offset < 0 || offset % element != 0 || offset + bytes > buffer->bytes()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a {} tensor of {} bytes at offset {} does not fit a shared buffer of "
                            "{} bytes",
                            c10::toString(dtype), bytes, offset, buffer->bytes()));
  }
  auto* data = static_cast<char*>(buffer->data()) + offset;
  const auto keep_alive = [owner = std::move(buffer)](void*) {};
  const auto options = at::TensorOptions().dtype(dtype);
  if (strides.empty()) return at::from_blob(data, sizes, keep_alive, options);
  return at::from_blob(data, sizes, strides, keep_alive, options);
}

}  // namespace lockstep
