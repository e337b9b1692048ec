#pragma once
// Finds the tensors in the result of a module's forward().

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <utility>

namespace lockstep {

/// Calls visit(tensor) for every tensor in `value`, at any depth. `value` is a tensor, an optional,
/// a pair or tuple, or a container (also of pairs, so a map). Ignores other types.
template <class T, class Visit>
void visit_tensors(const T& value, const Visit& visit) {
  if constexpr (std::is_convertible_v<const T&, const at::Tensor&>) {
    visit(static_cast<const at::Tensor&>(value));
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... part) { (visit_tensors(part, visit), ...); }, value);
  } else if constexpr (requires { value.has_value(), *value; }) {
    if (value.has_value()) visit_tensors(*value, visit);
  } else if constexpr (requires { value.begin() != value.end(), *value.begin(); }) {
    for (const auto& part : value) visit_tensors(part, visit);
  }
}

}  // namespace lockstep
