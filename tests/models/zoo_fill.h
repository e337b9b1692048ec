#pragma once
// Weights and pictures by a formula, the same as in zoo_reference.py: both compute in double and
// round to float32, so they have equal bits.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// FNV-1a.
inline uint32_t name_hash(std::string_view text) {
  uint32_t hash = 2166136261;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return hash;
}

/// A number in [-1, 1) for each place.
inline double noise_at(uint32_t place) {
  place ^= place >> 16;
  place *= 0x7feb352d;
  place ^= place >> 15;
  place *= 0x846ca68b;
  place ^= place >> 16;
  return (place >> 8) / 8388608.0 - 1;
}

/// values[i] = base + factor * noise, in place.
inline void fill_with_noise(at::Tensor& values, std::string_view name, double base, double factor) {
  const uint32_t first = name_hash(name);
  float* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(base + factor * noise_at(first + static_cast<uint32_t>(i)));
  }
}

/// Kaiming's deviation for weights, and values near the usual ones for all else.
inline void fill_by_formula(const std::string& name, at::Tensor values) {
  if (name.ends_with("num_batches_tracked")) return;
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool is_vector = values.numel() == values.size(0);
  // Squeeze and excitation weakens the signal, which residual networks strengthen.
  if (last == "running_var" && name.starts_with("features.")) {
    return fill_with_noise(values, name, 0.8, 0.2);
  }
  if (last == "running_var") return fill_with_noise(values, name, 1.5, 0.5);
  if (last == "layer_scale") return fill_with_noise(values, name, 0.5, 0.25);
  if (last == "pos_embedding" || last == "class_token") return fill_with_noise(values, name, 0, 1);
  if (last.ends_with("weight") && is_vector) return fill_with_noise(values, name, 1, 0.25);
  if (!last.ends_with("weight")) return fill_with_noise(values, name, 0, 0.1);
  const auto fan_in = static_cast<double>(values.numel() / values.size(0));
  fill_with_noise(values, name, 0, std::sqrt(6 / fan_in));
}

/// (2, 3, side, side).
inline at::Tensor pictures_by_formula(int64_t side) {
  at::Tensor pictures = at::empty({2, 3, side, side}, at::kFloat);
  fill_with_noise(pictures, "pictures", 0, 1);
  return pictures;
}

}  // namespace lockstep::inline internal
