#include "lockstep/checkpoint/host_copies.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/strides.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
/// Smaller tensors are left to libtorch's allocator.
constexpr int64_t kLarge = int64_t{1} << 20;
constexpr int64_t kAlignment = 64;

bool is_large(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && static_cast<int64_t>(tensor.nbytes()) >= kLarge;
}

/// Fresh memory, unmapped when the last owner goes; it begins at a huge page.
std::shared_ptr<std::byte> map_memory(int64_t bytes) {
  const auto mapped = static_cast<size_t>(bytes + kHugePage);
  void* const begin = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<void> owner(begin, [mapped](void* all) { ::munmap(all, mapped); });
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto skipped =
      round_up(static_cast<int64_t>(address), kHugePage) - static_cast<int64_t>(address);
  std::byte* const data = static_cast<std::byte*>(begin) + skipped;
  ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a wish
  return {owner, data};
}

}  // namespace

TensorMap host_copies(const TensorMap& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    if (is_large(tensor)) bytes += round_up(static_cast<int64_t>(tensor.nbytes()), kAlignment);
  }
  const auto memory = bytes > 0 ? map_memory(bytes) : nullptr;
  int64_t used = 0;
  TensorMap copies;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor source = tensor.detach();
    if (!is_large(source)) {
      copies.emplace(name, source.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
      continue;
    }
    const auto contiguous = c10::contiguous_strides(source.sizes());
    const bool dense = source.is_non_overlapping_and_dense();
    const at::Tensor copy = at::from_blob(
        memory.get() + used, source.sizes(),
        dense ? source.strides() : c10::IntArrayRef(contiguous), [memory](void*) {},
        source.options().device(at::kCPU));
    copies.emplace(name, copy.copy_(source));
    used += round_up(static_cast<int64_t>(source.nbytes()), kAlignment);
  }
  return copies;
}

}  // namespace lockstep::inline internal
