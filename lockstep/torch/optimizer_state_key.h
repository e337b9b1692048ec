#pragma once
// The key by which an optimizer of libtorch finds the state of a parameter.

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace lockstep::inline internal {

using OptimizerStates = std::decay_t<decltype(std::declval<torch::optim::Optimizer&>().state())>;

/// The optimizer's own key of a parameter: its address, which libtorch 1.x stores as text.
template <class Key = OptimizerStates::key_type>
Key optimizer_state_key(const at::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << static_cast<const void*>(parameter.unsafeGetTensorImpl());
    return text.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

}  // namespace lockstep::inline internal
