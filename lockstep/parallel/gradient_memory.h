#pragma once
// Where gradients lie while they are reduced: in memory shared with the peers of this host, or in
// that of a device whose group reduces there.

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
/// A large gradient that lies elsewhere (a temporary took the block) is copied into a free block;
/// when there is none, it is reduced in memory of its own, through the group's staging.
///
/// A .grad that was there before the pass is the program's, and stays: it is copied to where it is
/// reduced, and deliver() copies the result back into it, so that flat buffers, views and handles
/// see it. Only what an earlier pass made, and nothing but the parameter holds, is replaced.
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
  void serving(bool on);

  /// A pass begins whose gradients will be staged: notes which are there already.
  void begin_pass();
  /// A gradient that is only accumulated has come. `arrived`: what the hook was given.
  void saw(int index, const at::Tensor& arrived);

  /// Moves .grad of parameter `index` to where it can be reduced, or (the program's, or on another
  /// device) copies it there; an undefined one becomes zeros. `arrived`: as for saw().
  void stage(int index, const at::Tensor& arrived);

  /// For a parameter without a gradient in this pass: what it contributes is its .grad, or zeros,
  /// but .grad keeps its value. Afterwards accept() or leave it.
  void contribute_without_gradient(int index);
  /// Makes what was contributed so, and reduced since, the parameter's gradient, or (decline)
  /// forgets it.
  void accept(int index);
  void decline(int index);
  /// Copies what was reduced to the program's gradients and those on other devices. When all Works
  /// are done.
  void deliver();

  /// Makes all gradients undefined, for a pass to which all contribute so; accept() gives the
  /// program's back.
  void set_aside();

  /// Large gradients of this pass that did not come out where they are reduced: each cost a copy.
  const std::vector<int>& copied() const { return copied_; }
  /// Those of them whose .grad is the program's own. The others lost their block to a temporary.
  const std::vector<int>& of_program() const { return of_program_; }

  /// Starts the reduction of a bucket whose gradients have all been staged or contributed, for
  /// `site`; appends the Works. Until release() this object keeps what they write.
  void launch(const BucketLayout& bucket, ReduceOp op, std::vector<Work>& works, CallSite site);
  /// The same as a sum over all virtual ranks: `earlier` are this rank's other subtrees' gradients,
  /// by parameter. Returns functions that wait, for the end of the pass.
  std::vector<std::function<void()>> launch(const BucketLayout& bucket,
                                            std::span<const std::span<const at::Tensor>> earlier,
                                            SubtreeReduction& reduction, CallSite site);
  void release();
  /// Divides a bucket's gradients, when its Works are done.
  void divide(const BucketLayout& bucket, int divisor);
  /// Multiplies what was reduced.
  void scale(double factor);

  /// All of a bucket's gradients, which have been staged or contributed, with the zeros between
  /// them, as one vector.
  at::Tensor flat(const BucketLayout& bucket) const;
  /// Where a gradient that has been staged or contributed lies.
  const at::Tensor& reduced(int index) const { return reduced_[static_cast<size_t>(index)]; }

 private:
  struct Piece {
    void* data;
    int64_t count;
    DType dtype;
  };
  /// Where a bucket's gradients lie.
  std::vector<Piece> pieces(const BucketLayout& bucket);
  /// Other gradients, by parameter, as pieces() has the bucket's: tensors of the same memory
  /// format.
  std::vector<at::Tensor> like_pieces(const BucketLayout& bucket,
                                      std::span<const at::Tensor> gradients) const;
  bool is_placed(size_t index) const { return !places_[index].defined(); }
  bool is_away(size_t index) const { return !there_.defined() && !parameters_[index].is_cpu(); }
  at::Tensor place_of(const at::Tensor& like, int64_t offset) const;
  bool may_stay(const at::Tensor& grad, const at::Tensor& arrived, size_t index) const;
  bool may_replace(const at::Tensor& grad, size_t index) const;
  bool fills_block(const at::Tensor& tensor, size_t index) const;
  at::Tensor place_for(size_t index, const at::Tensor& arrived) const;
  at::Tensor empty_for(size_t index) const;
  void set_gradient(size_t index, const at::Tensor& grad);
  void take_home(size_t index);

  ProcessGroup group_;
  std::vector<at::Tensor> parameters_;
  std::vector<GradientSpec> specs_;
  bool on_device_;                      ///< All parameters are on the group's device.
  int64_t placed_bytes_;                ///< Gradients of at least as many are placed.
  std::shared_ptr<TensorArena> arena_;  ///< Null when none is.
  bool serving_ = false;
  std::shared_ptr<SharedBuffer> packed_;
  at::Tensor there_;  ///< In place of packed_, bytes on the group's device; undefined: not so.
  std::vector<BucketLayout> layouts_;
  std::vector<at::Tensor> places_;   ///< By parameter; undefined for placed ones.
  std::vector<at::Tensor> reduced_;  ///< By parameter, in a pass: what is reduced.
  std::vector<at::Tensor> homes_;    ///< By parameter, in a pass: where deliver() brings it.
  std::vector<at::Tensor> backups_;  ///< By parameter, in a pass: what decline() puts back.
  std::vector<bool> preset_;         ///< By parameter: .grad was there when the pass began.
  std::vector<int> copied_;
  std::vector<int> of_program_;

  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::vector<WeakTensor> made_;  ///< By parameter: the .grad that a pass, no program, made.
};

}  // namespace lockstep
