#include "lockstep/train/sample_weights.h"

#include <utility>

#include "lockstep/base/hash.h"

namespace lockstep::inline internal {

std::vector<double> balanced_weights(int64_t samples,
                                     const std::function<int64_t(int64_t sample)>& label) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < samples; ++i) {
    const auto number = static_cast<size_t>(label(i));
    if (number >= counts.size()) counts.resize(number + 1);
    ++counts[number];
  }
  std::vector<double> weights;
  weights.reserve(static_cast<size_t>(samples));
  for (int64_t i = 0; i < samples; ++i) {
    weights.push_back(1.0 / static_cast<double>(counts[static_cast<size_t>(label(i))]));
  }
  return weights;
}

void draw_by_weights(std::vector<double> weights, DataParts& parts) {
  if (weights.empty()) return;
  Hash hash;
  hash.update(&parts.digest, sizeof(parts.digest));
  hash.update(weights.data(), weights.size() * sizeof(double));
  parts.digest = first_64_bits(hash.hex());
  parts.order = weighted_order(std::move(weights));
  parts.with_replacement = true;
}

}  // namespace lockstep::inline internal
