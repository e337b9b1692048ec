#pragma once
// Where gradients lie while they are reduced: in memory shared with the peers of this host, or in
// that of a device whose group reduces there.

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/parallel/buckets.h"
#include "lockstep/tensor/tensor_arena.h"

namespace lockstep {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Brings gradients into such memory at the least cost.
///
/// Gradients below TensorArena::kMinBytes are packed: each has its place in its bucket, is copied
/// there once, and .grad is then that place. Larger ones are placed: autograd's kernels, while
/// serving() is on, write them into a block of an arena, and they are reduced where they came out.
/// A large gradient that lies elsewhere (the user set it, or a temporary took the block) is copied
/// into a free block; when there is none it is reduced where it is, through the group's staging.
///
/// Where each bucket must be one flat tensor, large gradients too are packed, unless they are alone
/// in their bucket; autograd still computes them in a block, which saves fresh pages in every step.
///
/// Gradients of parameters on another device than the CPU are all packed, by a copy to the host,
/// and deliver() copies what became of them back: .grad stays on the device. One such parameter,
/// and large gradients on the CPU are packed too.
///
/// But where all parameters are on the device that the group reduces on (ProcessGroup::device()),
/// buckets are there as well, unless they must be flat, for hooks compute on the host: gradients
/// are packed by a copy on the device, stay there, and .grad is then that place.
class GradientMemory {
 public:
  /// Collective. Errors: kInvalidArgument (a type that does not travel), kUnavailable (no shared
  /// memory).
  GradientMemory(ProcessGroup group, const std::vector<NamedTensor>& parameters);

  const std::vector<GradientSpec>& specs() const { return specs_; }

  /// Collective. Gives the packed gradients their places. Gradients that lie in places of an
  /// earlier call keep those alive, and are copied when their turn comes. `flat`: whether flat()
  /// will be called, and launch() will not.
  void form(const std::vector<std::vector<int>>& buckets, bool flat);
  const std::vector<BucketLayout>& buckets() const { return layouts_; }

  /// While on, this thread's tensors of the placed gradients' sizes come from the arena.
  void serving(bool on) const;

  /// Moves .grad of parameter `index` to where it can be reduced, or (another device) copies it
  /// there; an undefined one becomes zeros. `arrived`: what the hook was given.
  void bring(int index, const at::Tensor& arrived);

  /// For a parameter without a gradient in this pass: what it contributes is its .grad, or zeros,
  /// but .grad keeps its value. Afterwards accept() or leave it.
  void lend(int index);
  /// Makes what was lent, and reduced since, the parameter's gradient.
  void accept(int index);
  /// Copies what was reduced to the gradients on other devices. When all Works are done.
  void deliver();

  /// Starts the reduction of a bucket whose gradients have all been brought or lent, for `site`;
  /// appends the Works. Until release() this object keeps what they write.
  void launch(const BucketLayout& bucket, ReduceOp op, std::vector<Work>& works, CallSite site);
  void release();
  /// Divides a bucket's gradients, when its Works are done.
  void divide(const BucketLayout& bucket, int divisor);
  /// Multiplies what was reduced.
  void scale(double factor);

  /// All of a bucket's gradients, which have been brought or lent, with the zeros between them, as
  /// one vector.
  at::Tensor flat(const BucketLayout& bucket) const;
  /// Where a gradient that has been brought or lent lies.
  const at::Tensor& reduced(int index) const { return reduced_[static_cast<size_t>(index)]; }

 private:
  struct Piece {
    void* data;
    int64_t count;
    DType dtype;
  };
  /// Where a bucket's gradients lie.
  std::vector<Piece> pieces(const BucketLayout& bucket);
  bool is_placed(size_t index) const { return !places_[index].defined(); }
  bool is_away(size_t index) const { return !there_.defined() && !parameters_[index].is_cpu(); }
  at::Tensor place_of(const at::Tensor& like, int64_t offset) const;
  bool may_stay(const at::Tensor& grad, const at::Tensor& arrived, size_t index) const;
  at::Tensor empty_for(size_t index) const;

  ProcessGroup group_;
  std::vector<at::Tensor> parameters_;
  std::vector<GradientSpec> specs_;
  bool on_device_;                      ///< All parameters are on the group's device.
  int64_t placed_bytes_;                ///< Gradients of at least as many are placed.
  std::shared_ptr<TensorArena> arena_;  ///< Null when none is.
  std::shared_ptr<SharedBuffer> packed_;
  at::Tensor there_;  ///< In place of packed_, bytes on the group's device; undefined: not so.
  std::vector<BucketLayout> layouts_;
  std::vector<at::Tensor> places_;   ///< By parameter; undefined for placed ones.
  std::vector<at::Tensor> reduced_;  ///< By parameter, in a pass: what is reduced.
  std::vector<bool> awaited_;        ///< By parameter, in a pass: deliver() brings it.
};

}  // namespace lockstep
