#include "lockstep/data/loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "lockstep/data/batches.h"
#include "lockstep/data/pictures/memory_pictures.h"
#include "lockstep/data/pictures/picture_batches.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

/// Sample i: every pixel i % 256, label i % 10. Sample `broken` is unreadable.
class FakeImages final : public ImageDataset {
 public:
  explicit FakeImages(int64_t size, int64_t broken = -1) : size_(size), broken_(broken) {
    for (int value = 0; value < 256; ++value) {
      images_.emplace_back(3 * 4 * 4, static_cast<uint8_t>(value));
    }
  }
  int64_t size() const override { return size_; }
  ImageShape shape() const override { return {3, 4, 4}; }
  int64_t num_classes() const override { return 10; }
  int64_t label(int64_t index) const override {
    if (index == broken_) throw Error(ErrorCode::kCorrupt, "sample cannot be read");
    const std::lock_guard lock(mutex_);
    ++reads_;
    changed_.notify_all();
    return index % 10;
  }
  /// Waits until `reads` samples were read; false after a minute.
  bool wait_for(int64_t reads) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return reads_ >= reads; });
  }
  int64_t reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  std::span<const uint8_t> image(int64_t index) const override {
    return images_[static_cast<size_t>(index % 256)];
  }

 private:
  int64_t size_;
  int64_t broken_;
  std::vector<std::vector<uint8_t>> images_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int64_t reads_ = 0;
};

std::vector<int64_t> order_of(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

Loader make_loader(int64_t size, LoaderOptions options, std::vector<PictureStep> steps = {}) {
  auto data = std::make_shared<FakeImages>(size);
  return Loader(image_batches(data, ImageTransform(std::move(steps), data->shape(), 11)), options);
}

TEST(Loader, GivesTheOrderInBatches) {
  auto loader = make_loader(10, {.batch_size = 4});
  loader.start(0, {order_of(10)});
  EXPECT_EQ(loader.num_batches(10), 3);
  int64_t expected = 9;
  for (const int64_t rows : {4, 4, 2}) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->images.sizes(), at::IntArrayRef({rows, 3, 4, 4}));
    EXPECT_EQ(batch->images.scalar_type(), at::kFloat);
    EXPECT_EQ(batch->targets[0].scalar_type(), at::kLong);
    EXPECT_EQ(batch->valid, rows);
    for (int64_t row = 0; row < rows; ++row, --expected) {
      EXPECT_EQ(batch->targets[0][row].item<int64_t>(), expected);
      EXPECT_EQ(batch->images[row][2][3][3].item<float>(), static_cast<float>(expected) / 255.0F);
    }
  }
  EXPECT_FALSE(loader.next());
}

TEST(Loader, DropsARemainderWhenAsked) {
  auto loader = make_loader(10, {.batch_size = 4, .drop_remainder = true});
  loader.start(0, {order_of(10)});
  EXPECT_EQ(loader.num_batches(10), 2);
  EXPECT_TRUE(loader.next());
  EXPECT_TRUE(loader.next());
  EXPECT_FALSE(loader.next());
}

std::vector<int64_t> labels_of(const Batch& batch) {
  const auto* labels = batch.targets[0].data_ptr<int64_t>();
  return {labels, labels + batch.targets[0].numel()};
}

// Two lists of five samples, laid in turn.
TEST(Loader, MakesABatchOfEachPartInTurn) {
  const std::vector<int64_t> order = {0, 1, 5, 6, 2, 3, 7, 8, 4, 9};
  auto loader = make_loader(10, {.batch_size = 2, .parts = 2, .threads = 3, .prefetch = 1});
  EXPECT_EQ(loader.num_batches(10), 6);
  loader.start(0, {order});
  std::vector<std::vector<int64_t>> batches;
  while (const auto batch = loader.next()) batches.push_back(labels_of(*batch));
  EXPECT_EQ(batches, (std::vector<std::vector<int64_t>>{{0, 1}, {5, 6}, {2, 3}, {7, 8}, {4}, {9}}));
  auto dropping = make_loader(10, {.batch_size = 2, .parts = 2, .drop_remainder = true});
  EXPECT_EQ(dropping.num_batches(10), 4);
  dropping.start(0, {order});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(dropping.next());
  EXPECT_FALSE(dropping.next());
}

/// Rows of one long tensor, with no copy; of all rows the tensor itself.
class Views final : public BatchMaker {
 public:
  int64_t size() const override { return 100; }
  Batch make(const BatchRows& rows) const override {
    const int64_t count = std::ssize(rows.samples);
    const auto own = count == size() ? all_ : all_.narrow(0, rows.samples.front(), count);
    return {own, {own}, rows.num_counted};
  }

 private:
  at::Tensor all_ = at::arange(100, at::kFloat);
};

/// As a data set that shows its own array: nothing but the data set knows of that memory.
class Blobs final : public BatchMaker {
 public:
  int64_t size() const override { return 16; }
  Batch make(const BatchRows& rows) const override {
    return {at::from_blob(numbers_, {std::ssize(rows.samples)}, at::kFloat), {}, rows.num_counted};
  }

 private:
  alignas(64) mutable float numbers_[16] = {};
};

// Sums in libtorch's kernels may depend on where a tensor begins.
TEST(Loader, AlignsTensors) {
  Loader loader(std::make_unique<Views>(), {.batch_size = 3});
  loader.start(0, {{5, 6, 7}});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  for (const auto& tensor : {batch->images, batch->targets[0]}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64, 0U);
    EXPECT_TRUE(at::equal(tensor, at::arange(5, 8, at::kFloat)));
  }
}

TEST(Loader, ABatchIsNotTheMemoryOfTheDataSet) {
  for (const int64_t rows : {16, 100}) {
    Loader loader(std::make_unique<Views>(), {.batch_size = rows});
    std::vector<int64_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start(epoch, {order});
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      batch->images.fill_(-1);
      EXPECT_TRUE(at::equal(batch->targets[0], at::arange(rows, at::kFloat)));
      batch->targets[0].fill_(-1);
    }
  }
}

TEST(Loader, ABatchIsNotAnArrayOfTheDataSet) {
  Loader loader(std::make_unique<Blobs>(), {.batch_size = 16});
  std::vector<int64_t> order(16);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start(epoch, {order});
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_TRUE(at::equal(batch->images, at::full({16}, 0, at::kFloat)));
    batch->images.fill_(-1);
  }
}

/// Batches whose rows are not next to one another.
class Columns final : public BatchMaker {
 public:
  int64_t size() const override { return 16; }
  Batch make(const BatchRows& rows) const override {
    return {at::arange(32, at::kFloat).view({2, 16}).t(), {}, rows.num_counted};
  }
};

TEST(Loader, RowsAreNextToOneAnother) {
  Loader loader(std::make_unique<Columns>(), {.batch_size = 16});
  loader.start(0, {order_of(16)});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->images.is_contiguous());
  EXPECT_EQ(batch->images[15][1].item<float>(), 31);
}

TEST(Loader, PaddingAtTheEndDoesNotCount) {
  auto loader = make_loader(10, {.batch_size = 3});
  loader.start(0, {{5, 6, 7, 8, 5, 6, 5}}, /*num_counted=*/4);
  std::vector<int64_t> valid;
  while (const auto batch = loader.next()) valid.push_back(batch->valid);
  EXPECT_EQ(valid, (std::vector<int64_t>{3, 1, 0}));
}

TEST(Loader, SameBatchesWhateverTheThreads) {
  const std::vector<PictureStep> steps = {RandomCrop{4, 1}, RandomHorizontalFlip{}, Normalize{}};
  auto one = make_loader(100, {.batch_size = 8, .threads = 1}, steps);
  auto many = make_loader(100, {.batch_size = 8, .threads = 4, .prefetch = 7}, steps);
  one.start(3, {order_of(100)});
  many.start(3, {order_of(100)});
  while (const auto batch = one.next()) {
    const auto other = many.next();
    ASSERT_TRUE(other);
    EXPECT_TRUE(at::equal(batch->images, other->images));
    EXPECT_TRUE(at::equal(batch->targets[0], other->targets[0]));
  }
  EXPECT_FALSE(many.next());
}

TEST(Loader, RestOfAnEpochIsTheSameAsInOneGo) {
  const std::vector<PictureStep> steps = {RandomCrop{4, 1}, RandomHorizontalFlip{}};
  auto whole = make_loader(64, {.batch_size = 8}, steps);
  auto rest = make_loader(64, {.batch_size = 8}, steps);
  const auto order = order_of(64);
  whole.start(2, {order});
  for (int i = 0; i < 5; ++i) whole.next();
  rest.start(2, {{order.begin() + 40, order.end()}});
  while (const auto batch = rest.next())
    EXPECT_TRUE(at::equal(batch->images, whole.next()->images));
}

/// The rest of an epoch.
std::vector<at::Tensor> images_of(Loader& loader) {
  std::vector<at::Tensor> images;
  while (const auto batch = loader.next()) images.push_back(batch->images);
  return images;
}

TEST(Loader, ReadsAheadOverTheEndOfAnEpochAndGivesTheSameBatches) {
  const std::vector<PictureStep> steps = {RandomCrop{4, 2}, RandomHorizontalFlip{}};
  const LoaderOptions options{.batch_size = 2, .threads = 2, .prefetch = 3};
  const auto data = std::make_shared<FakeImages>(8);
  Loader loader(image_batches(data, ImageTransform(steps, data->shape(), 11)), options);
  auto plain = make_loader(8, options, steps);
  const auto first = order_of(8);
  const std::vector<int64_t> second = {3, 1, 4, 1, 5, 2, 6};

  loader.start(0, {first});
  loader.follow(1, {second});
  EXPECT_EQ(images_of(loader).size(), 4U);
  EXPECT_TRUE(data->wait_for(8 + 6)) << "three batches ahead";
  loader.start(1, {second});
  const auto images = images_of(loader);
  EXPECT_EQ(data->reads(), 8 + 7) << "none is read twice, and nothing behind the last epoch";
  plain.start(1, {second});
  const auto expected = images_of(plain);
  ASSERT_EQ(images.size(), expected.size());
  for (size_t i = 0; i < images.size(); ++i) EXPECT_TRUE(images[i].equal(expected[i])) << i;
}

TEST(Loader, WhatFollowsMayTurnOutOtherwise) {
  const LoaderOptions options{.batch_size = 2, .threads = 2, .prefetch = 3};
  auto loader = make_loader(8, options, {RandomCrop{4, 2}});
  auto plain = make_loader(8, options, {RandomCrop{4, 2}});
  loader.start(0, {order_of(8)});
  loader.follow(1, {order_of(8)});
  images_of(loader);
  loader.start(2, {order_of(8)});
  plain.start(2, {order_of(8)});
  EXPECT_TRUE(at::cat(images_of(loader)).equal(at::cat(images_of(plain))));
}

TEST(Loader, CarriesAnErrorToTheConsumer) {
  auto data = std::make_shared<FakeImages>(20, /*broken=*/9);
  Loader loader(image_batches(data, ImageTransform({}, data->shape(), 0)),
                {.batch_size = 4, .threads = 2});
  std::vector<int64_t> order(20);
  std::iota(order.begin(), order.end(), 0);
  loader.start(0, {order});
  EXPECT_TRUE(loader.next());
  EXPECT_TRUE(loader.next());
  EXPECT_THROW(loader.next(), Error);
  EXPECT_FALSE(loader.next());
  loader.start(0, {{1, 2, 3}});
  EXPECT_TRUE(loader.next());
}

TEST(Loader, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(make_loader(4, {.batch_size = 0}), Error);
  EXPECT_THROW(make_loader(4, {.parts = 0}), Error);
  EXPECT_THROW(make_loader(4, {.threads = 0}), Error);
  EXPECT_THROW(make_loader(4, {.prefetch = 0}), Error);
  auto loader = make_loader(4, {.batch_size = 2});
  EXPECT_THROW(loader.start(0, {{0, 4}}), Error);
  EXPECT_THROW(loader.start(0, {{-1}}), Error);
  auto of_two = make_loader(4, {.parts = 2});
  EXPECT_THROW(of_two.start(0, {{0, 1, 2}}), Error);
  auto data = std::make_shared<FakeImages>(4);
  EXPECT_THROW(image_batches(data, ImageTransform({}, {3, 8, 8}, 0)), Error);
}

/// `size` images of FakeImages. Multiples of four are refused; 99 is a fault of the transform.
std::unique_ptr<const BatchMaker> picky_batches(BadSample bad, int64_t size, int64_t among = 0) {
  const OwnTransform picky{"Picky", [](Picture& picture) {
                             const int byte = picture.bytes()[0];
                             if (byte == 99) throw std::out_of_range("no such row");
                             if (byte % 4 != 0) return;
                             throw Error(ErrorCode::kInvalidArgument, "a multiple of four");
                           }};
  auto source =
      memory_pictures(std::make_shared<FakeImages>(size), among > 0 ? among : size, "there");
  PicturePipeline pipeline({picky}, 11, false, PicturesAlike{{4, 4}});
  return picture_batches(PictureReader(std::move(source), std::move(pipeline), bad, 11), bad);
}

TEST(PicturesInMemory, AnImageThatAnOwnTransformRefusesIsReplacedInTraining) {
  const std::vector<int64_t> order = {5, 8, 6, 12};
  const auto batch = picky_batches(BadSample::kReplaced, 99)->make({0, order, 3});
  EXPECT_EQ(batch.valid, 3);
  ASSERT_EQ(batch.faults.size(), 2U);
  EXPECT_EQ(batch.faults[0].find("sample 8 cannot be used: there: image 8: Picky: a multiple of "
                                 "four; sample "),
            0U)
      << batch.faults[0];
  EXPECT_NE(batch.faults[0].find(") stands in its place"), std::string::npos) << batch.faults[0];
  ASSERT_EQ(batch.images.size(0), 4);
  EXPECT_EQ(batch.targets[0][0].item<int64_t>(), 5);
  EXPECT_EQ(batch.targets[0][2].item<int64_t>(), 6);
  for (const int64_t row : {0, 1, 2, 3}) {
    const auto byte = std::lround(batch.images[row][0][0][0].item<float>() * 255);
    EXPECT_NE(byte % 4, 0) << row;
    EXPECT_EQ(batch.targets[0][row].item<int64_t>(), byte % 10) << row;
  }
}

TEST(PicturesInMemory, ReplacementsAreOfTheImagesThatAreUsed) {
  const std::vector<int64_t> refused = {0, 4, 0, 4, 0, 4, 0, 4};
  const auto batch = picky_batches(BadSample::kReplaced, 99, 6)->make({0, refused, 8});
  EXPECT_EQ(batch.faults.size(), 8U);
  for (int64_t row = 0; row < 8; ++row) {
    EXPECT_LT(std::lround(batch.images[row][0][0][0].item<float>() * 255), 6) << row;
  }
}

TEST(PicturesInMemory, AnImageThatAnOwnTransformRefusesIsLeftOutInEvaluation) {
  const auto maker = picky_batches(BadSample::kLeftOut, 99);
  const std::vector<int64_t> order = {8, 5, 6, 7};
  const auto batch = maker->make({0, order, 3});
  EXPECT_EQ(batch.valid, 2);
  EXPECT_EQ(batch.faults,
            std::vector<std::string>{
                "sample 8 cannot be used: there: image 8: Picky: a multiple of four"});
  ASSERT_EQ(batch.images.sizes(), at::IntArrayRef({2, 3, 4, 4}));
  EXPECT_EQ(batch.targets[0][0].item<int64_t>(), 5);
  EXPECT_EQ(batch.targets[0][1].item<int64_t>(), 6);
  const std::vector<int64_t> unusable = {4, 8};
  EXPECT_EQ(maker->make({0, unusable, 2}).images.size(0), 0);
}

TEST(PicturesInMemory, AFaultOfAnOwnTransformNamesTheImage) {
  const std::vector<int64_t> order = {5, 99};
  for (const auto bad : {BadSample::kReplaced, BadSample::kLeftOut}) {
    try {
      picky_batches(bad, 100)->make({0, order, 2});
      ADD_FAILURE() << "no failure";
    } catch (const TransformFailed& failure) {
      EXPECT_STREQ(failure.what(), "there: image 99: the transform Picky failed: no such row");
    }
  }
}

}  // namespace
}  // namespace lockstep
