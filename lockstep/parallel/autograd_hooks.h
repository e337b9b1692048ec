#pragma once
// The hooks of data parallel training into libtorch's autograd engine. Everything that differs
// between libtorch versions (1.13 to 2.x) belongs here and into its .cpp.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace lockstep::inline internal {

/// Calls a function each time a leaf tensor's gradient was accumulated, until destroyed.
///
/// `hook` runs in the thread that runs backward, after .grad has its new value; its exceptions come
/// out of backward(). It receives the new gradient, which may be undefined; .grad may have taken
/// over its memory. Not called for torch::autograd::grad().
class GradientHook {
 public:
  GradientHook(const at::Tensor& leaf, std::function<void(const at::Tensor& arrived)> hook);
  ~GradientHook();
  GradientHook(GradientHook&& other) noexcept;
  GradientHook& operator=(GradientHook&&) = delete;

 private:
  struct Hung;  // libtorch's own pointers to a node have another type since 2.12
  std::unique_ptr<Hung> hung_;
};

/// Calls `begun` whenever a backward pass, of backward() or of autograd::grad(), reaches `output`.
/// Returns false, and does nothing, for a leaf and for a tensor that no gradient can reach.
bool at_begin_of_backward(const at::Tensor& output, std::function<void()> begun);

/// Keeps `what` until the tensor is destroyed. It belongs to the tensor itself, not to its copies
/// or values, so moving a module to another type or device changes nothing.
void keep_with(const at::Tensor& tensor, std::shared_ptr<void> what);

/// Calls `done` once, at the end of the backward pass that runs in this thread, before backward()
/// returns. Its exceptions come out of backward(). It is dropped if the pass fails earlier. Only
/// inside the functions given to the two above.
void at_end_of_backward(std::function<void()> done);

}  // namespace lockstep::inline internal
