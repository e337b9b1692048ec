#include "lockstep/data/mixing.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lockstep {
namespace {

constexpr ImageShape kSmall{2, 6, 5};

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments_of_beta(double alpha) {
  constexpr int kDraws = 20'000;
  Moments sums;
  for (uint64_t i = 0; i < kDraws; ++i) {
    Philox random(5, 1, i);
    const double value = draw_beta(alpha, random);
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 1);
    sums.mean += value / kDraws;
    sums.variance += (value - 0.5) * (value - 0.5) / kDraws;
  }
  return sums;
}

TEST(Mixing, SharesAreOfTheBetaDistribution) {
  for (const double alpha : {0.01, 0.2, 1.0, 5.0, 1000.0}) {
    const auto [mean, variance] = moments_of_beta(alpha);
    const double expected = 0.25 / (2 * alpha + 1);
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(variance, expected, 0.05 * expected) << alpha;
  }
}

/// n images; all pixels of image i are i + 1.
std::vector<float> pixels_of(size_t n) {
  std::vector<float> pixels;
  for (size_t i = 0; i < n; ++i) {
    pixels.insert(pixels.end(), static_cast<size_t>(kSmall.numel()), static_cast<float>(i + 1));
  }
  return pixels;
}

struct MixedImages {
  std::vector<float> pixels;
  std::vector<float> targets;
};

MixedImages mixed(const Mixing& mixing, const std::vector<int64_t>& samples, int64_t epoch = 3) {
  std::vector<int64_t> labels;
  for (size_t i = 0; i < samples.size(); ++i) labels.push_back(static_cast<int64_t>(i % 4));
  MixedImages out{pixels_of(samples.size()), std::vector<float>(samples.size() * 4, -1)};
  mix(mixing, 9, epoch, {samples, labels, kSmall, 4, out.pixels.data(), out.targets.data()});
  return out;
}

const std::vector<int64_t> kSamples = {17, 4, 1'000'000, 5, 60};

TEST(Mixing, EachImageIsMixedWithTheNextOne) {
  const Mixing mixing{MixUp{0.8, 1}, {}};
  const auto out = mixed(mixing, kSamples);
  for (size_t i = 0; i < kSamples.size(); ++i) {
    const size_t next = (i + 1) % kSamples.size();
    const auto share = static_cast<float>(draw_mixture(mixing, 9, 3, kSamples[i], kSmall).share);
    const float expected =
        share * static_cast<float>(i + 1) + (1 - share) * static_cast<float>(next + 1);
    for (size_t at = 0; at < 60; ++at) EXPECT_EQ(out.pixels[i * 60 + at], expected) << i;
    std::vector<float> shares(4);
    shares[i % 4] += share;
    shares[next % 4] += 1 - share;
    for (size_t k = 0; k < 4; ++k) EXPECT_FLOAT_EQ(out.targets[i * 4 + k], shares[k]) << i;
  }
}

TEST(Mixing, ACutImageHasARectangleOfTheNextOne) {
  const Mixing mixing{{}, CutMix{1, 1}};
  size_t with_both = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const auto out = mixed(mixing, kSamples, epoch);
    for (size_t i = 0; i < kSamples.size(); ++i) {
      const size_t next = (i + 1) % kSamples.size();
      const auto mixture = draw_mixture(mixing, 9, epoch, kSamples[i], kSmall);
      ASSERT_TRUE(mixture.box);
      const auto& box = *mixture.box;
      float others = 0;
      for (int64_t at = 0; at < 60; ++at) {
        const int64_t y = at % 30 / 5, x = at % 5;
        const bool inside =
            y >= box.top && y < box.top + box.height && x >= box.left && x < box.left + box.width;
        const size_t source = inside ? next : i;
        ASSERT_EQ(out.pixels[i * 60 + static_cast<size_t>(at)], static_cast<float>(source + 1));
        others += inside ? 1.0F / 60 : 0.0F;
      }
      EXPECT_NEAR(1 - mixture.share, others, 1e-6);
      EXPECT_NEAR(std::accumulate(&out.targets[i * 4], &out.targets[i * 4] + 4, 0.0F), 1, 1e-6);
      if (others > 0) ++with_both;
    }
  }
  EXPECT_GT(with_both, 40U);
}

TEST(Mixing, OfTwoKindsEachImageTakesOne) {
  const Mixing mixing{MixUp{}, CutMix{}};
  int cuts = 0;
  for (int64_t index = 0; index < 400; ++index) {
    if (draw_mixture(mixing, 1, 0, index, kSmall).box) ++cuts;
  }
  EXPECT_GT(cuts, 140);
  EXPECT_LT(cuts, 260);
}

TEST(Mixing, HappensWithItsProbability) {
  int alone = 0;
  for (int64_t index = 0; index < 400; ++index) {
    if (draw_mixture({MixUp{1, 0.3}, {}}, 1, 0, index, kSmall).share == 1) ++alone;
  }
  EXPECT_GT(alone, 240);
  EXPECT_LT(alone, 320);
}

TEST(Mixing, DependsOnSeedEpochAndSample) {
  const Mixing mixing{MixUp{}, {}};
  const auto share = [&](uint64_t seed, int64_t epoch, int64_t index) {
    return draw_mixture(mixing, seed, epoch, index, kSmall).share;
  };
  EXPECT_EQ(share(1, 2, 3), share(1, 2, 3));
  EXPECT_NE(share(1, 2, 3), share(2, 2, 3));
  EXPECT_NE(share(1, 2, 3), share(1, 3, 3));
  EXPECT_NE(share(1, 2, 3), share(1, 2, 4));
}

TEST(Mixing, OneImageStaysAsItIs) {
  const auto out = mixed({{}, CutMix{}}, {8});
  EXPECT_EQ(out.pixels, pixels_of(1));
  EXPECT_FLOAT_EQ(out.targets[0], 1);
}

}  // namespace
}  // namespace lockstep
