#include "lockstep/data/pictures/picture_batches.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/data/loader.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/memory_pictures.h"
#include "lockstep/data/pictures/reader.h"
#include "tests/data/pictures/drawn.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// 24 pictures of different sizes, of three classes.
class PictureBatches : public ::testing::Test {
 protected:
  PictureBatches() {
    for (int i = 0; i < 24; ++i) {
      write_picture(path(i), drawn_picture(20 + i % 5, 18 + i % 3, i));
    }
  }
  fs::path path(int index) const {
    return dir_ / (std::string(1, static_cast<char>('a' + index / 8)) + "/" +
                   static_cast<char>('a' + index) + ".png");
  }
  Loader loader(const LoaderOptions& options, BadSample bad = BadSample::kReplaced,
                std::vector<PictureStep> steps = {RandomResizedCrop{{8, 6}}, RandomHorizontalFlip{},
                                                  ColorJitter{{0.5, 1.5}}, Normalize{},
                                                  RandomErasing{}}) const {
    return Loader(batches(bad, std::move(steps)), options);
  }
  std::unique_ptr<const BatchMaker> batches(BadSample bad, std::vector<PictureStep> steps,
                                            PixelForm form = PixelForm::kFloats) const {
    const auto index = std::make_shared<PictureIndex>(index_folder(dir_.path()));
    return picture_batches(PictureReader(index, PicturePipeline(std::move(steps), 11), bad, 11),
                           bad, form);
  }

  TempFolder dir_;
};

std::vector<int64_t> backwards(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

std::vector<Batch> rest_of(Loader& loader) {
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

void expect_same(const std::vector<Batch>& one, const std::vector<Batch>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::equal(one[i].images, other[i].images)) << i;
    EXPECT_TRUE(at::equal(one[i].targets[0], other[i].targets[0])) << i;
    EXPECT_EQ(one[i].faults, other[i].faults) << i;
  }
}

TEST_F(PictureBatches, HavePlanesAndLabels) {
  auto batches = loader({.batch_size = 10});
  batches.start(0, {backwards(24)});
  const auto all = rest_of(batches);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].images.sizes(), at::IntArrayRef({10, 3, 6, 8}));
  EXPECT_EQ(all[0].images.scalar_type(), at::kFloat);
  EXPECT_EQ(all[2].images.size(0), 4);
  EXPECT_EQ(all[0].targets[0].scalar_type(), at::kLong);
  EXPECT_EQ(all[0].targets[0][0].item<int64_t>(), 2);
  EXPECT_EQ(all[2].targets[0][3].item<int64_t>(), 0);
  EXPECT_EQ(all[2].valid, 4);
}

TEST_F(PictureBatches, AreTheSameWhateverTheThreads) {
  fs::resize_file(path(5), 50);  // its replacement, too
  auto one = loader({.batch_size = 4, .threads = 1});
  auto many = loader({.batch_size = 4, .threads = 4, .prefetch = 5});
  one.start(3, {backwards(24)});
  many.start(3, {backwards(24)});
  expect_same(rest_of(one), rest_of(many));
}

TEST_F(PictureBatches, AsBytesBecomeTheSameFloats) {
  const Normalize normalize{{0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}};
  const std::vector<PictureStep> drawn = {RandomResizedCrop{{8, 6}}, ColorJitter{{0.5, 1.5}},
                                          normalize};
  const std::vector<PictureStep> cut = {CenterCrop{{8, 6}}, normalize};  // a part of a matrix
  fs::resize_file(path(5), 50);
  const auto order = backwards(24);
  for (const auto& steps : {drawn, cut}) {
    for (const BadSample bad : {BadSample::kReplaced, BadSample::kLeftOut}) {
      const Batch floats = batches(bad, steps)->make({1, order, 20});
      Batch bytes = batches(bad, steps, PixelForm::kBytes)->make({1, order, 20});
      EXPECT_EQ(bytes.images.sizes(), at::IntArrayRef({floats.images.size(0), 6, 8, 3}));
      EXPECT_EQ(bytes.images.scalar_type(), at::kByte);
      EXPECT_TRUE(at::equal(bytes.inputs_on(at::kCPU).front(), floats.images));
      bytes.move_to(at::kCPU);
      EXPECT_TRUE(at::equal(bytes.images, floats.images) && bytes.images.is_contiguous());
      EXPECT_FALSE(bytes.byte_values.defined());
      expect_same({bytes}, {floats});
    }
  }
}

/// Grey images of 4 x 5 pixels, which begin with their number.
class GreyImages final : public ImageDataset {
 public:
  int64_t size() const override { return 6; }
  ImageShape shape() const override { return {1, 4, 5}; }
  int64_t num_classes() const override { return 6; }
  int64_t label(int64_t index) const override { return index; }
  std::span<const uint8_t> image(int64_t index) const override {
    return std::span(bytes_).subspan(static_cast<size_t>(index), 20);
  }

 private:
  const std::vector<uint8_t> bytes_ = [] {
    std::vector<uint8_t> bytes(26);
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    return bytes;
  }();
};

TEST(MemoryPictureBatches, HaveOneOrThreeChannelsAsFloatsAndBytes) {
  const std::vector<int64_t> order = {5, 0, 3};
  for (const int64_t channels : {1, 3}) {
    const auto batch_as = [&](PixelForm form) {
      PicturePipeline pipeline({CenterCrop{{3, 2}}}, 1, false, PicturesAlike{{5, 4}, channels});
      return picture_batches(PictureReader(memory_pictures(std::make_shared<GreyImages>(), 6, "d"),
                                           std::move(pipeline), BadSample::kReplaced, 1),
                             BadSample::kReplaced, form)
          ->make({0, order, 3});
    };
    const Batch floats = batch_as(PixelForm::kFloats), bytes = batch_as(PixelForm::kBytes);
    ASSERT_EQ(floats.images.sizes(), at::IntArrayRef({3, channels, 2, 3}));
    EXPECT_EQ(bytes.images.sizes(), at::IntArrayRef({3, 2, 3, channels}));
    EXPECT_TRUE(at::equal(bytes.inputs_on(at::kCPU).front(), floats.images));
    for (int64_t c = 0; c < channels; ++c) {  // row 1 and column 1 are the first that stay
      EXPECT_EQ(floats.images[0][c][0][0].item<float>(), (5 + 5 + 1) / 255.0F);
      EXPECT_EQ(floats.images[2][c][1][2].item<float>(), (3 + 10 + 3) / 255.0F);
    }
    EXPECT_EQ(floats.targets[0][0].item<int64_t>(), 5);
  }
}

TEST_F(PictureBatches, AsBytesNeedAPipelineWithoutStepsOnFloats) {
  const Error error = error_of([&] {
    batches(BadSample::kReplaced, {Normalize{}, RandomErasing{}}, PixelForm::kBytes);
  });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
}

TEST_F(PictureBatches, AreTheSameWhateverTheRanks) {
  auto whole = loader({.batch_size = 24});
  whole.start(2, {backwards(24)});
  const auto all = rest_of(whole);
  const auto order = backwards(24);
  for (int64_t rank = 0; rank < 3; ++rank) {
    std::vector<int64_t> own;
    for (size_t i = static_cast<size_t>(rank); i < order.size(); i += 3) own.push_back(order[i]);
    auto part = loader({.batch_size = 8});
    part.start(2, {own});
    const auto batch = part.next();
    ASSERT_TRUE(batch);
    for (int64_t row = 0; row < 8; ++row) {
      EXPECT_TRUE(at::equal(batch->images[row], all[0].images[row * 3 + rank])) << rank << row;
    }
  }
}

TEST_F(PictureBatches, OwnTransformsAreTheSameWhateverTheThreads) {
  const OwnTransform noise{"Noise", [](Picture& picture, RandomNumbers& random) {
                             for (uint8_t& byte : picture.bytes()) {
                               byte = static_cast<uint8_t>(byte ^ random.below(8));
                             }
                           }};
  const auto made_with = [&](int threads, const std::vector<PictureStep>& steps) {
    auto made =
        loader({.batch_size = 4, .threads = threads, .prefetch = 5}, BadSample::kReplaced, steps);
    made.start(3, {backwards(24)});
    return rest_of(made);
  };
  const std::vector<PictureStep> steps = {RandomResizedCrop{{8, 6}}, noise, RandomHorizontalFlip{}};
  const auto one = made_with(1, steps);
  expect_same(one, made_with(3, steps));
  const auto without = made_with(1, {RandomResizedCrop{{8, 6}}});
  EXPECT_FALSE(at::equal(one[0].images, without[0].images)) << "the noise does something";
}

TEST_F(PictureBatches, RestOfAnEpochIsTheSameAsInOneGo) {
  auto whole = loader({.batch_size = 4});
  auto rest = loader({.batch_size = 4});
  const auto order = backwards(24);
  whole.start(1, {order});
  for (int i = 0; i < 3; ++i) whole.next();
  rest.start(1, {{order.begin() + 12, order.end()}});
  expect_same(rest_of(whole), rest_of(rest));
}

TEST_F(PictureBatches, DifferFromEpochToEpoch) {
  auto batches = loader({.batch_size = 24});
  batches.start(0, {backwards(24)});
  const auto first = rest_of(batches);
  batches.start(1, {backwards(24)});
  EXPECT_FALSE(at::equal(first[0].images, rest_of(batches)[0].images));
}

TEST_F(PictureBatches, DrawsOfOnePictureDifferByTheirKeys) {
  auto batches = loader({.batch_size = 3});
  batches.start(0, {{4, 4, 4}, {0, 1, 0}});
  const auto images = rest_of(batches).at(0).images;
  EXPECT_FALSE(at::equal(images[0], images[1]));
  EXPECT_TRUE(at::equal(images[0], images[2]));
}

TEST_F(PictureBatches, DamagedPicturesAreReplacedInTrainingAndCounted) {
  fs::resize_file(path(5), 50);
  auto batches = loader({.batch_size = 24});
  batches.start(0, {backwards(24)});
  const auto all = rest_of(batches);
  EXPECT_EQ(all[0].images.size(0), 24);
  EXPECT_EQ(all[0].valid, 24);
  ASSERT_EQ(all[0].faults.size(), 1U);
  EXPECT_EQ(all[0].faults[0].find("sample 5 cannot be used: " + path(5).string()), 0U);
}

TEST_F(PictureBatches, DamagedPicturesAreLeftOutInEvaluationAndCounted) {
  fs::resize_file(path(5), 50);
  fs::remove(path(6));
  auto batches = loader({.batch_size = 4}, BadSample::kLeftOut, {ResizePicture{0, {8, 6}}});
  fs::resize_file(path(7), 50);
  std::vector<int64_t> order(12);
  std::iota(order.begin(), order.end(), 0);
  batches.start(0, {order}, /*num_counted=*/10);
  const auto all = rest_of(batches);
  ASSERT_EQ(all.size(), 3U);
  // Picture 6 was gone when the folder was read, so 6 is what was 7.
  EXPECT_EQ(all[1].images.size(0), 2);
  EXPECT_EQ(all[1].valid, 2);
  EXPECT_EQ(all[1].faults.size(), 2U);
  EXPECT_EQ(all[2].images.size(0), 2) << "padding is no sample";
  EXPECT_EQ(all[2].valid, 2);
}

TEST_F(PictureBatches, MayBeEmpty) {
  for (int i = 0; i < 2; ++i) fs::resize_file(path(i), 50);
  auto batches = loader({.batch_size = 2}, BadSample::kLeftOut, {ResizePicture{0, {8, 6}}});
  batches.start(0, {{0, 1, 2}});
  const auto batch = batches.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->images.size(0), 0);
  EXPECT_EQ(batch->targets[0].size(0), 0);
  EXPECT_EQ(batch->valid, 0);
  EXPECT_EQ(batch->faults.size(), 2U);
}

TEST_F(PictureBatches, PicturesOfDifferentSizesNeedATransform) {
  auto batches = loader({.batch_size = 2}, BadSample::kLeftOut, {Normalize{}});
  batches.start(0, {{0, 1}});
  const auto error = error_of([&] { batches.next(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()),
            "one batch has pictures of 20 x 18 (" + path(0).string() + ") and 21 x 19 (" +
                path(1).string() +
                "): transform_pipeline needs Resize [height, width], CenterCrop, RandomCrop or "
                "RandomResizedCrop");
}

}  // namespace
}  // namespace lockstep
