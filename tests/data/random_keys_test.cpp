// Samples that are drawn several times in an epoch, with random values of their own each time. For
// pictures of files see pictures/reader_test.cpp, for text ocr_reader_test.cpp.

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "lockstep/data/batches.h"
#include "lockstep/data/loader.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

/// Shows which samples it is to make, and by which keys.
class ShownKeys final : public BatchMaker {
 public:
  int64_t size() const override { return 10; }
  Batch make(const BatchRows& rows) const override {
    BatchRows of_keys = rows;
    of_keys.samples = rows.random_keys();
    return {indices_of(rows), {indices_of(of_keys)}, rows.num_counted};
  }
};

/// Samples, each with its key.
using SampleKeys = std::vector<std::pair<int64_t, int64_t>>;

/// Those of the rest of an epoch.
SampleKeys sample_keys(Loader& loader) {
  SampleKeys all;
  while (const auto batch = loader.next()) {
    const auto* samples = batch->images.data_ptr<int64_t>();
    const auto* keys = batch->targets[0].data_ptr<int64_t>();
    for (int64_t i = 0; i < batch->valid; ++i) all.emplace_back(samples[i], keys[i]);
  }
  return all;
}

TEST(RandomKeys, GoWithTheirSamples) {
  const EpochOrder drawn{{4, 4, 7, 0, 4, 9}, {20, 21, 22, 23, 24, 25}};
  const EpochOrder others{drawn.samples, {30, 31, 32, 33, 34, 35}};
  const SampleKeys keys = {{4, 20}, {4, 21}, {7, 22}, {0, 23}, {4, 24}, {9, 25}};
  const SampleKeys other_keys = {{4, 30}, {4, 31}, {7, 32}, {0, 33}, {4, 34}, {9, 35}};
  for (const LoaderOptions& options :
       {LoaderOptions{.batch_size = 4}, LoaderOptions{.batch_size = 2, .parts = 3, .threads = 2}}) {
    Loader loader(std::make_unique<ShownKeys>(), options);
    loader.start(0, drawn);
    loader.follow(1, others);
    EXPECT_EQ(sample_keys(loader), keys);
    loader.start(1, others);
    loader.follow(2, others);
    EXPECT_EQ(sample_keys(loader), other_keys);
    loader.start(2, drawn);
    EXPECT_EQ(sample_keys(loader), keys) << "not those that were told ahead";
  }
}

TEST(RandomKeys, AreTheSamplesWhereThereAreNone) {
  Loader loader(std::make_unique<ShownKeys>(), {.batch_size = 2});
  loader.start(0, {{4, 4, 7}});
  EXPECT_EQ(sample_keys(loader), (SampleKeys{{4, 4}, {4, 4}, {7, 7}}));
}

TEST(RandomKeys, AreAsManyAsSamples) {
  Loader loader(std::make_unique<ShownKeys>(), {.batch_size = 2});
  EXPECT_THROW(loader.start(0, {{0, 1}, {0}}), Error);
  EXPECT_THROW(loader.follow(0, {{0, 1}, {0, 1, 2}}), Error);
}

/// One image of 8 x 8, each of whose pixels has a byte of its own.
class GradedImage final : public ImageDataset {
 public:
  GradedImage() : bytes_(64) { std::iota(bytes_.begin(), bytes_.end(), uint8_t{1}); }
  int64_t size() const override { return 1; }
  ImageShape shape() const override { return {1, 8, 8}; }
  int64_t num_classes() const override { return 1; }
  int64_t label(int64_t) const override { return 0; }
  std::span<const uint8_t> image(int64_t) const override { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

TEST(RandomKeys, AnImageInMemoryWithAnotherLooksDifferent) {
  const auto data = std::make_shared<GradedImage>();
  const auto maker = image_batches(data, ImageTransform({RandomCrop{8, 4}}, data->shape(), 11));
  const std::vector<int64_t> samples = {0, 0, 0}, keys = {0, 1, 1};
  const at::Tensor images = maker->make({2, samples, 3, keys}).images;
  EXPECT_FALSE(at::equal(images[0], images[1]));
  EXPECT_TRUE(at::equal(images[1], images[2]));
  const at::Tensor by_sample = maker->make({2, samples, 3}).images;
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(by_sample[i], images[0])) << i;
}

/// Images of 2 x 2 pixels, each all of its label, 0 or 1.
class TwoLabels final : public BatchMaker {
 public:
  int64_t size() const override { return 10; }
  Batch make(const BatchRows& rows) const override {
    const auto labels = indices_of(rows).remainder(2);
    return {labels.to(at::kFloat).reshape({-1, 1, 1, 1}).expand({-1, 3, 2, 2}).contiguous(),
            {labels},
            rows.num_counted};
  }
};

TEST(RandomKeys, ASampleWithAnotherIsMixedOtherwise) {
  const std::vector<int64_t> samples = {6, 3, 6, 3, 6, 3}, keys = {0, 1, 2, 3, 0, 1};
  const auto maker = mixed_batches(std::make_unique<TwoLabels>(),
                                   {.mixing = {MixUp{}, {}}, .seed = 4, .num_classes = 2});
  const auto shares = maker->make({2, samples, 6, keys}).targets[0];
  EXPECT_FALSE(at::equal(shares[0], shares[2]));
  EXPECT_TRUE(at::equal(shares[0], shares[4]));
  const auto by_sample = maker->make({2, samples, 6}).targets[0];
  EXPECT_TRUE(at::equal(by_sample[0], by_sample[2]));
  EXPECT_TRUE(at::equal(by_sample, maker->make({2, samples, 6, samples}).targets[0]));
}

}  // namespace
}  // namespace lockstep
