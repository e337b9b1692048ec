#pragma once
// Mixtures of two labelled images, MixUp and CutMix, within a batch.

#include <cstdint>
#include <optional>
#include <span>

#include "lockstep/base/philox.h"
#include "lockstep/data/dataset.h"

namespace lockstep::inline internal {

/// The weighted mean of both images, everywhere.
/// Source: Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.
struct MixUp {
  double alpha = 1;  ///< The share of an image is drawn from Beta(alpha, alpha).
  double prob = 1;   ///< Otherwise the image stays alone.
};

/// A rectangle of the other image in the place of its own.
/// Source: Yun et al., "CutMix", ICCV 2019, section 3.1.
struct CutMix {
  double alpha = 1;
  double prob = 1;
};

/// With both, each image takes one of them, with equal probability.
struct Mixing {
  std::optional<MixUp> mix_up;
  std::optional<CutMix> cut_mix;

  bool any() const { return mix_up || cut_mix; }
};

/// The part that the other image has in a mixture.
struct Mixture {
  double share = 1;  ///< Of the image itself, in its label; the other one has the rest.
  /// The other image's rectangle; none: the pixels are mixed everywhere.
  struct Box {
    int64_t top = 0;
    int64_t left = 0;
    int64_t height = 0;
    int64_t width = 0;
  };
  std::optional<Box> box{};
};

/// The mixture of a sample. It depends on (seed, epoch, key), see BatchRows, and the size alone;
/// the words are of a stream that no transform of the sample draws from.
Mixture draw_mixture(const Mixing& mixing, uint64_t seed, int64_t epoch, int64_t key,
                     ImageShape size);

/// From Beta(alpha, alpha), alpha in [0.01, 1000]. Source: Marsaglia and Tsang, "A simple method
/// for generating gamma variables", 2000.
double draw_beta(double alpha, Philox& random);

/// Mixes each image of a batch with the next one, and the last with the first, in place.
///
/// pixels: (n, C, H, W) of n samples, each of shape `shape`. labels: (n). targets: (n, classes),
/// receives the share of each class; a row adds up to 1. So the result depends on the samples of
/// the batch, their keys and their order alone, not on ranks or threads.
struct MixedBatch {
  std::span<const int64_t> keys;
  std::span<const int64_t> labels;
  ImageShape shape;
  int64_t num_classes = 0;
  float* pixels = nullptr;
  float* targets = nullptr;
};
void mix(const Mixing& mixing, uint64_t seed, int64_t epoch, const MixedBatch& batch);

}  // namespace lockstep::inline internal
