#pragma once
// The memory of gradients during their reduction: shared with the peers of this host, or on a
// device whose group reduces there.

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/parallel/buckets.h"
#include "lockstep/parallel/subtree_reduction.h"
#include "lockstep/process_group.h"
#include "lockstep/tensor/tensor_arena.h"

namespace lockstep::inline internal {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Moves gradients into such memory at the least cost.
///
/// Gradients below TensorArena::kMinBytes are packed: each has a place in its bucket, is copied
/// there once, and .grad is then that place. Larger ones are placed: while serving() is on,
/// autograd's kernels write them into a block of an arena, where they are reduced. A large gradient
/// that lies elsewhere (a temporary took the block) is copied into a free block. If there is none,
/// it is reduced in its own memory, through the group's staging.
///
/// A .grad from before the pass belongs to the program, and stays. It is copied to the place of
/// reduction, and deliver() copies the result back into it, so that flat buffers, views and handles
/// see it. A .grad is replaced only if an earlier pass made it and only the parameter holds it.
///
/// If each bucket must be one flat tensor, large gradients are packed too, unless they are alone in
/// their bucket. Autograd still computes them in a block, which saves fresh pages in every step.
///
/// If all parameters are on one device other than the CPU, or on the group's
/// (ProcessGroup::device()), buckets lie on that device as well. Gradients are then packed by a
/// copy on the device and stay there, and .grad is that place. No such copy, and no launch(), waits
/// for the device. A group that does not reduce there gets each bucket by one copy to the host.
///
/// Flat buckets are on the host, because hooks compute there. Gradients on a device are then packed
/// by a copy to the host, and deliver() copies the results back: .grad stays on the device. The
/// same holds if parameters lie on several devices; large gradients on the CPU are packed too then.
class GradientMemory {
 public:
  /// Collective. Errors: kInvalidArgument (an element type that cannot be sent), kUnavailable (no
  /// shared memory).
  GradientMemory(ProcessGroup group, const std::vector<NamedTensor>& parameters);

  const std::vector<GradientSpec>& specs() const { return specs_; }

  /// Collective. Gives the packed gradients their places. Gradients in places of an earlier call
  /// keep those alive, and are copied in their turn. `flat`: true if flat() will be called, and
  /// launch() will not.
  void form(const std::vector<std::vector<int>>& buckets, bool flat);
  const std::vector<BucketLayout>& buckets() const { return layouts_; }

  /// While on, this thread's tensors of the placed gradients' sizes come from the arena.
  void serving(bool on);

  /// Begins a pass whose gradients will be staged: records existing ones.
  void begin_pass();
  /// Records a gradient that is only accumulated. `arrived`: the tensor that the hook received.
  void saw(int index, const at::Tensor& arrived);

  /// Moves .grad of parameter `index` to a place of reduction, or copies it there if it is the
  /// program's or on another device. An undefined .grad becomes zeros. `arrived`: as in saw().
  void stage(int index, const at::Tensor& arrived);

  /// For a parameter without a gradient in this pass: contributes its .grad, or zeros, and keeps
  /// the value of .grad. Call accept() or decline() afterwards.
  void contribute_without_gradient(int index);
  /// After the reduction: accept() makes the result of such a contribution the parameter's
  /// gradient. decline() drops it, and .grad is that of before, if it is the program's.
  void accept(int index);
  void decline(int index);
  /// Copies results to the program's gradients and to those on other devices. The program's
  /// gradients without a result are restored. Call it when all Works are done.
  void deliver();

  /// Makes all gradients undefined, for a pass in which all parameters of the buckets contribute in
  /// this way. accept(), decline() and deliver() restore the program's.
  void set_aside();

  /// Large gradients of this pass that were not computed at the place of reduction: each cost a
  /// copy.
  const std::vector<int>& copied() const { return copied_; }
  /// The ones of these whose .grad is the program's own. The others lost their block to a
  /// temporary.
  const std::vector<int>& of_program() const { return of_program_; }

  /// Starts the reduction of a bucket whose gradients have all been staged or contributed, for
  /// `site`; appends the Works. Until release() this object keeps their output alive.
  void launch(const BucketLayout& bucket, ReduceOp op, std::vector<Work>& works, CallSite site);
  /// The same as a sum over all virtual ranks; `earlier`: gradients of this rank's other subtrees,
  /// by parameter. Returns functions that wait, to call at the end of the pass.
  std::vector<std::function<void()>> launch(const BucketLayout& bucket,
                                            std::span<const std::span<const at::Tensor>> earlier,
                                            SubtreeReduction& reduction, CallSite site);
  void release();
  /// Divides a bucket's gradients, when its Works are done.
  void divide(const BucketLayout& bucket, int divisor);
  /// Multiplies the results.
  void scale(double factor);

  /// All staged or contributed gradients of a bucket, with the zeros between them, as one vector.
  at::Tensor flat(const BucketLayout& bucket) const;
  /// The place of a gradient that has been staged or contributed.
  const at::Tensor& reduced(int index) const { return reduced_[static_cast<size_t>(index)]; }

 private:
  /// Consecutive elements that are reduced at once: packed gradients, or one outside them.
  struct BucketPart {
    void* data;
    int64_t count;
    DType dtype;
  };
  at::Tensor packed_there(const BucketLayout& bucket) const;
  /// The places of a bucket's gradients, on the host.
  std::vector<BucketPart> parts(const BucketLayout& bucket);
  /// Other gradients, by parameter, in the order of parts(): tensors of the same memory format.
  std::vector<at::Tensor> like_parts(const BucketLayout& bucket,
                                     std::span<const at::Tensor> gradients) const;
  bool is_placed(size_t index) const { return !places_[index].defined(); }
  bool is_away(size_t index) const { return !there_.defined() && !parameters_[index].is_cpu(); }
  at::Tensor place_of(const at::Tensor& like, int64_t offset) const;
  bool may_stay(const at::Tensor& grad, const at::Tensor& arrived, size_t index) const;
  bool is_made(const at::Tensor& grad, size_t index) const;
  bool may_replace(const at::Tensor& grad, size_t index) const;
  bool fills_block(const at::Tensor& tensor, size_t index) const;
  at::Tensor place_for(size_t index, const at::Tensor& arrived) const;
  at::Tensor empty_for(size_t index) const;
  void set_gradient(size_t index, const at::Tensor& grad);
  void take_home(size_t index);

  ProcessGroup group_;
  std::vector<at::Tensor> parameters_;
  std::vector<GradientSpec> specs_;
  bool on_device_;                      ///< Buckets may lie where all parameters are.
  int64_t placed_bytes_;                ///< Gradients of at least this size are placed.
  std::shared_ptr<TensorArena> arena_;  ///< Null if none is placed.
  bool serving_ = false;
  std::shared_ptr<SharedBuffer> packed_;
  at::Tensor there_;  ///< Replaces packed_: bytes on the parameters' device; else undefined.
  std::vector<BucketLayout> layouts_;
  std::vector<at::Tensor> places_;   ///< By parameter; undefined for placed gradients.
  std::vector<at::Tensor> reduced_;  ///< By parameter, in a pass: the tensor to reduce.
  std::vector<at::Tensor> homes_;    ///< By parameter, in a pass: the destination of deliver().
  std::vector<at::Tensor> backups_;  ///< By parameter, in a pass: decline() restores it.
  std::vector<bool> preset_;         ///< By parameter: .grad existed when the pass began.
  std::vector<int> copied_;
  std::vector<int> of_program_;

  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::vector<WeakTensor> made_;  ///< By parameter: the .grad that a pass made, not the program.
};

}  // namespace lockstep::inline internal
