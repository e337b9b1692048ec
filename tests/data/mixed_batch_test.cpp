#include "lockstep/data/batches.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/data/loader.h"

namespace lockstep {
namespace {

/// Images of 2 x 3 pixels, each all of its number; labels modulo 5.
class NumberedImages final : public BatchMaker {
 public:
  int64_t size() const override { return 100; }
  Batch make(const BatchRows& rows) const override {
    const auto indices = indices_of(rows);
    return {indices.to(at::kFloat).reshape({-1, 1, 1, 1}).expand({-1, 3, 2, 3}).contiguous(),
            {indices.remainder(5)},
            rows.num_counted};
  }
};

std::unique_ptr<const BatchMaker> mixed_images() {
  return mixed_batches(std::make_unique<NumberedImages>(),
                       {.mixing = {MixUp{}, CutMix{}}, .seed = 4, .num_classes = 7});
}

Batch batch_of(const std::vector<int64_t>& samples) {
  const auto maker = mixed_images();
  EXPECT_EQ(maker->size(), 100);
  return maker->make({2, samples, std::ssize(samples)});
}

// So a virtual rank's images are the same on whatever rank it is.
TEST(MixedBatches, ImagesAreMixedWithinABatchOfAPart) {
  const std::vector<int64_t> first = {5, 80, 31}, second = {7, 2, 99};
  std::vector<int64_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  Loader loader(mixed_images(), {.batch_size = 3, .parts = 2});
  loader.start(2, {both});
  for (const auto& samples : {first, second}) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    const auto alone = batch_of(samples);
    EXPECT_EQ(batch->valid, 3);
    EXPECT_TRUE(at::equal(batch->images, alone.images));
    EXPECT_TRUE(at::equal(batch->targets[0], alone.targets[0]));
  }
  const auto together = batch_of(both).images.narrow(0, 0, 3);
  EXPECT_FALSE(at::equal(together, batch_of(first).images));
}

TEST(MixedBatches, TargetsAreSharesOfTheClasses) {
  std::vector<int64_t> samples(20);
  std::iota(samples.begin(), samples.end(), 40);
  const auto batch = batch_of(samples);
  ASSERT_EQ(batch.targets.size(), 1U);
  EXPECT_EQ(batch.targets[0].sizes(), at::IntArrayRef({20, 7}));
  EXPECT_EQ(batch.targets[0].scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(batch.targets[0].sum(1), at::full({20}, 1.0F)));
  // Here an image's number is its mean as long as it is mixed linearly, cut or not.
  for (int64_t i = 0; i < 20; ++i) {
    const double own = batch.targets[0][i][(40 + i) % 5].item<double>();
    const auto next = static_cast<double>(40 + (i + 1) % 20);
    const double expected = own * static_cast<double>(40 + i) + (1 - own) * next;
    EXPECT_NEAR(batch.images[i].mean().item<double>(), expected, 1e-3) << i;
  }
}

TEST(MixedBatches, AnEmptyBatchStaysEmpty) {
  EXPECT_EQ(batch_of({}).images.size(0), 0);
}

}  // namespace
}  // namespace lockstep
