#pragma once
// A module that computes in a 16-bit type, and its weights in float32.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/amp_policy.h"

namespace lockstep::inline internal {

/// Casts parameters and floating buffers of `module` in place according to `level`. O0 and O1 cast
/// none, O2 all but those of batch norms (BatchNorm1d to 3d and all modules with a running_mean),
/// O3 all. `dtype`: see low_precision(). float64 becomes `dtype` too.
void cast_module(torch::nn::Module& module, AmpLevel level, at::ScalarType dtype);

/// Casts a module and keeps its weights in float32, for levels O2 and O3:
///
///   MasterWeights masters(net, AmpLevel::kO2, at::kBFloat16);
///   auto optimizer = torch::optim::SGD(masters.module().parameters(), ...);
///   auto model = DistributedDataParallel(net, group);
///   ... (loss * scale).backward();  // gradients of 16 bits, averaged in 16 bits
///   masters.take_gradients();       // in float32 from here on: unscale, clip
///   optimizer.step();
///   masters.publish();
///
/// module() has the parameters and buffers of the net under the same names, so its checkpoints are
/// those of a float32 run. Both share the tensors that the cast left unchanged (batch norm in O2).
/// The net's tensors must not be replaced. Memory beyond the net's: 4 bytes, and with
/// take_gradients() 4 more, for each cast value.
class MasterWeights {
 public:
  MasterWeights(torch::nn::Module& net, AmpLevel level, at::ScalarType dtype);

  torch::nn::Module& module() { return *twin_; }

  /// Copies the gradients of the net, in float32, to module()'s parameters; undefined ones too.
  void take_gradients();
  /// Copies the parameters of module(), rounded, to the net: after an optimizer step.
  void publish();
  /// Copies the buffers to the net too: after a load.
  void publish_all();
  /// Copies the net's buffers, which change in forward, to module(): before a save.
  void collect_buffers();

 private:
  struct Pair {
    at::Tensor net;     ///< 16 bits.
    at::Tensor master;  ///< float32.
  };

  std::shared_ptr<torch::nn::Module> twin_;
  std::vector<Pair> parameters_;  ///< Only those that the cast changed.
  std::vector<Pair> buffers_;
};

}  // namespace lockstep::inline internal
