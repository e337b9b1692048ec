#pragma once
// Averaging passes of several data parallel models over the same parameters.

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/parallel/gradient_memory.h"

namespace lockstep::inline internal {

/// Whether a model has announced a pass that averages its parameters' gradients. All models of this
/// process see it, because two of them may have a parameter in common. One may replace another of
/// the same module, or two may share a part. Threads: any.
class AnnouncedPass {
 public:
  explicit AnnouncedPass(const std::vector<NamedTensor>& parameters);
  ~AnnouncedPass() { set(false); }
  AnnouncedPass(const AnnouncedPass&) = delete;
  AnnouncedPass& operator=(const AnnouncedPass&) = delete;

  /// Cost when it changes: an atomic addition per parameter.
  void set(bool announced);
  /// True if another model has announced a pass that averages this parameter's gradient.
  bool is_others_too(size_t parameter) const { return *counts_[parameter] > (announced_ ? 1 : 0); }

 private:
  using Count = std::shared_ptr<std::atomic<int>>;
  static Count count_of(const at::Tensor& parameter);

  std::vector<Count> counts_;  ///< By parameter: models with an announced pass.
  bool announced_ = false;
};

}  // namespace lockstep::inline internal
