#include "lockstep/data/mixing.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace lockstep::inline internal {
namespace {

/// The epoch's second highest bit. The highest marks the stream of replacements.
constexpr uint32_t kMixingStream = 0x40000000;

/// In (0, 1], so that it has a logarithm.
double above_zero(Philox& random) {
  return 1 - random.uniform();
}

double draw_normal(Philox& random) {
  const double length = std::sqrt(-2 * std::log(above_zero(random)));
  return length * std::cos(2 * std::numbers::pi * random.uniform());
}

/// The logarithm of a gamma variable: for small alpha the variable itself may be too small.
double draw_log_gamma(double alpha, Philox& random) {
  if (alpha < 1) {
    const double more = draw_log_gamma(alpha + 1, random);
    return more + std::log(above_zero(random)) / alpha;
  }
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {  // one in twenty draws is refused
    const double x = draw_normal(random);
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    if (std::log(above_zero(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

Mixture::Box draw_box(double share, ImageShape size, Philox& random) {
  const auto column = random.below(static_cast<uint32_t>(size.width));
  const auto row = random.below(static_cast<uint32_t>(size.height));
  const double half = 0.5 * std::sqrt(1 - share);
  const auto wide = static_cast<int64_t>(half * static_cast<double>(size.width));
  const auto high = static_cast<int64_t>(half * static_cast<double>(size.height));
  const int64_t left = std::max<int64_t>(0, column - wide), top = std::max<int64_t>(0, row - high);
  return {top, left, std::min(size.height, row + high) - top,
          std::min(size.width, column + wide) - left};
}

void mix_pixels(const Mixture& mixture, ImageShape shape, const float* other, float* own) {
  if (!mixture.box) {
    const auto share = static_cast<float>(mixture.share);
    for (int64_t i = 0; i < shape.numel(); ++i) own[i] = share * own[i] + (1 - share) * other[i];
    return;
  }
  const auto& box = *mixture.box;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = box.top; y < box.top + box.height; ++y) {
      const int64_t at = (c * shape.height + y) * shape.width + box.left;
      std::copy_n(other + at, box.width, own + at);
    }
  }
}

}  // namespace

double draw_beta(double alpha, Philox& random) {
  const double one = draw_log_gamma(alpha, random);
  const double other = draw_log_gamma(alpha, random);
  return 1 / (1 + std::exp(other - one));
}

Mixture draw_mixture(const Mixing& mixing, uint64_t seed, int64_t epoch, int64_t key,
                     ImageShape size) {
  Philox random(seed, static_cast<uint32_t>(epoch) | kMixingStream, static_cast<uint64_t>(key));
  const bool both = mixing.mix_up && mixing.cut_mix;
  const bool cuts = both ? random.below(2) == 1 : mixing.cut_mix.has_value();
  const double prob = cuts ? mixing.cut_mix->prob : mixing.mix_up->prob;
  if (random.uniform() >= prob) return {};
  Mixture mixture{draw_beta(cuts ? mixing.cut_mix->alpha : mixing.mix_up->alpha, random)};
  if (!cuts) return mixture;
  mixture.box = draw_box(mixture.share, size, random);
  const auto area = static_cast<double>(mixture.box->height * mixture.box->width);
  mixture.share = 1 - area / static_cast<double>(size.height * size.width);
  return mixture;
}

void mix(const Mixing& mixing, uint64_t seed, int64_t epoch, const MixedBatch& batch) {
  const size_t count = batch.keys.size();
  if (count == 0) return;
  const auto numel = static_cast<size_t>(batch.shape.numel());
  const std::vector<float> first(batch.pixels, batch.pixels + numel);  // the last one needs it
  std::fill_n(batch.targets, static_cast<int64_t>(count) * batch.num_classes, 0.0F);
  for (size_t i = 0; i < count; ++i) {
    const size_t next = (i + 1) % count;
    const auto mixture = draw_mixture(mixing, seed, epoch, batch.keys[i], batch.shape);
    const float* other = next == 0 ? first.data() : batch.pixels + next * numel;
    if (mixture.share < 1) mix_pixels(mixture, batch.shape, other, batch.pixels + i * numel);
    float* shares = batch.targets + static_cast<int64_t>(i) * batch.num_classes;
    shares[batch.labels[i]] += static_cast<float>(mixture.share);
    shares[batch.labels[next]] += static_cast<float>(1 - mixture.share);
  }
}

}  // namespace lockstep::inline internal
