#include "lockstep/train/sample_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/counted.h"
#include "lockstep/base/hash.h"

namespace lockstep::inline internal {
namespace {

/// Samples of each class, by its number; 0 of one without any.
std::vector<int64_t> class_sizes(int64_t samples,
                                 const std::function<int64_t(int64_t sample)>& label) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < samples; ++i) {
    const auto number = static_cast<size_t>(label(i));
    if (number >= sizes.size()) sizes.resize(number + 1);
    ++sizes[number];
  }
  return sizes;
}

}  // namespace

SampleWeights balanced_weights(int64_t samples,
                               const std::function<int64_t(int64_t sample)>& label) {
  std::vector<int64_t> sizes = class_sizes(samples, label);
  SampleWeights weights;
  weights.values.reserve(static_cast<size_t>(samples));
  for (int64_t i = 0; i < samples; ++i) {
    weights.values.push_back(1.0 / static_cast<double>(sizes[static_cast<size_t>(label(i))]));
  }
  std::erase(sizes, 0);
  if (sizes.empty()) return weights;
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  weights.note =
      fmt::format("sampler balanced: each of {} is drawn as often as any other (they have {})",
                  counted(std::ssize(sizes), "class", "classes"),
                  *least == *most ? fmt::format("{} each", counted(*most, "sample"))
                                  : fmt::format("{} to {} samples", *least, *most));
  return weights;
}

void draw_by_weights(SampleWeights weights, DataParts& parts) {
  auto& values = weights.values;
  if (values.empty()) return;
  Hash hash;
  hash.update(&parts.digest, sizeof(parts.digest));
  hash.update(values.data(), values.size() * sizeof(double));
  parts.digest = first_64_bits(hash.hex());
  parts.order = weighted_order(std::move(values));
  parts.with_replacement = true;
  parts.notes.push_back(std::move(weights.note));
}

}  // namespace lockstep::inline internal
