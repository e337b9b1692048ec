#pragma once
// Sums of the gradients and buffers of a rank's own virtual ranks, in the order of the tree.

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "lockstep/parallel/module_state.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// Lets one module serve a rank's virtual ranks one after the other, as if each had a rank of its
/// own. Every virtual rank starts a step with the same buffers (running statistics) and no
/// gradient. Within an accumulation it starts with its own from before.
///
/// In a step, for each index in [0, range.count): enter(index); the virtual rank's forward and
/// backward; then keep(index) to accumulate, or else add(index). Call finish() after the last.
///
/// A program's own .grad (kept by a handle or a view, or in its memory) is restored by finish(),
/// with the result.
///
/// After the last virtual rank there is one sum for each of owned_subtrees(): one sum if
/// ranks_add_as_tree() holds.
///
/// Memory beyond the module's: log2(count) + 1 gradients of the whole module and as many of its
/// buffers. With several subtrees, at most one more for each; while gradients accumulate, `count`
/// of both.
class LocalReduction {
 public:
  /// `parameters`: those that require gradients. Collective.
  LocalReduction(ProcessGroup group, VirtualRankRange range, std::vector<NamedTensor> parameters,
                 std::vector<NamedTensor> buffers);

  const VirtualRankRange& range() const { return range_; }

  void enter(int index);
  /// Sets the virtual rank's gradients and buffers aside until it is entered again. After the last
  /// virtual rank the module has the buffers from before the step. Errors of keep(), add() and
  /// finish(): kInvalidArgument, which names the parameters without a gradient, or one whose
  /// gradient is sparse.
  void keep(int index);
  /// Adds the virtual rank's gradients and buffers to the sums.
  void add(int index);
  /// Adds in place: `gradient`, the last virtual rank's of parameter `i`, becomes the sum over the
  /// last of this rank's subtrees. No other owner may hold its memory.
  void add_sums_to(size_t i, const at::Tensor& gradient) const;
  /// The sums over the other subtrees, in order, of the gradients by parameter. Call it after the
  /// last virtual rank's backward.
  std::vector<std::span<const at::Tensor>> earlier_sums() const;
  /// Collective. Ends the last virtual rank. Gradients: with `alone` (a group of one) they become
  /// the mean over all virtual ranks here; else the caller averages them. Buffers of a floating
  /// type become the mean over all virtual ranks of all ranks, in the tree's order. Others become
  /// those of virtual rank 0. Without `average_buffers` (a module that is not training) they are
  /// as before the step.
  void finish(bool alone, bool average_buffers);

  /// Time of the last finish() for awaiting and averaging the buffers of all ranks.
  double averaging_ms() const { return averaging_ms_; }

  /// Ends the step early: drops kept and added values; the buffers are as before the step.
  void reset();

 private:
  struct Left {
    std::vector<at::Tensor> gradients;  ///< By parameter.
    std::vector<at::Tensor> buffers;
  };
  size_t num_sums_for_last() const;
  void push(int index, Left left);
  void average_alone();
  void go_home();
  std::vector<at::Tensor> take_gradients() const;
  std::vector<at::Tensor> clone_buffers() const;
  void set_buffers(const std::vector<at::Tensor>& values) const;
  void require_gradients() const;

  VirtualRankRange range_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  bool under_way_ = false;         ///< A step is in progress; an accumulation counts as one.
  std::vector<at::Tensor> base_;   ///< The buffers before the step.
  std::vector<at::Tensor> homes_;  ///< By parameter: the program's .grad, or undefined.
  std::vector<Left> kept_;         ///< By index; empty unless gradients accumulate.
  std::vector<Left> sums_;         ///< Of whole nodes of the tree, in order.
  BufferAverage average_;
  double averaging_ms_ = 0;
};

}  // namespace lockstep::inline internal
