#pragma once
// The places where data parallel training hangs on libtorch's autograd engine. Everything that
// differs between libtorch versions (1.13 to 2.x) belongs here and into its .cpp, nowhere else.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace lockstep {

/// Calls a function each time a leaf tensor's gradient was accumulated, until destroyed.
///
/// `hook` runs in the thread that runs backward, after .grad has its new value; what it throws
/// comes out of backward(). It is given the gradient that arrived, which may be undefined; .grad
/// may have taken over its memory. Not called for torch::autograd::grad().
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
/// A tensor that no gradient can reach is left alone, and so is a leaf: false.
bool at_begin_of_backward(const at::Tensor& output, std::function<void()> begun);

/// Keeps `what` until the tensor is gone: the tensor itself, not its copies or values, so that
/// moving a module to another type or device changes nothing.
void keep_with(const at::Tensor& tensor, std::shared_ptr<void> what);

/// Calls `done` once, at the end of the backward pass that runs in this thread, before backward()
/// returns; what it throws comes out of backward(). It is dropped when the pass fails before.
/// Only inside the functions given to the two above.
void at_end_of_backward(std::function<void()> done);

}  // namespace lockstep
