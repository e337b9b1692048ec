// Images in memory have the bits of the same pictures in files, whatever the transforms.

#include "lockstep/data/pictures/memory_pictures.h"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "lockstep/data/pictures/folder.h"
#include "tests/data/pictures/drawn.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

constexpr int64_t kImages = 12;

/// Colour: drawn_picture(32, 28, i). Grey: the first channel of that. The label is i / 6.
class DrawnImages final : public ImageDataset {
 public:
  explicit DrawnImages(int64_t channels) : shape_{channels, 28, 32} {
    for (int i = 0; i < kImages; ++i) {
      const cv::Mat picture = drawn_picture(32, 28, i);
      std::vector<uint8_t> planes;
      for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
        for (size_t at = 0; at < picture.total(); ++at) planes.push_back(picture.data[3 * at + c]);
      }
      planes_.push_back(std::move(planes));
    }
  }
  int64_t size() const override { return kImages; }
  ImageShape shape() const override { return shape_; }
  int64_t num_classes() const override { return 2; }
  int64_t label(int64_t index) const override { return index / 6; }
  std::span<const uint8_t> image(int64_t index) const override {
    return planes_.at(static_cast<size_t>(index));
  }

 private:
  ImageShape shape_;
  std::vector<std::vector<uint8_t>> planes_;
};

/// A folder for each class, of PNG files in the order of the images.
void write_images(const TempFolder& folder, int64_t channels) {
  for (int i = 0; i < kImages; ++i) {
    cv::Mat picture = drawn_picture(32, 28, i);
    if (channels == 1) {
      cv::Mat grey;
      cv::extractChannel(picture, grey, 0);
      cv::cvtColor(grey, picture, cv::COLOR_GRAY2RGB);
    }
    write_picture(folder / fmt::format("{}/{:02}.png", i / 6, i), picture);
  }
}

std::vector<float> floats_of(const PictureReader& reader, int64_t epoch, int64_t index) {
  const auto read = reader.read(epoch, std::vector<int64_t>{index});
  EXPECT_EQ(read.faults, std::vector<std::string>());
  const auto& sample = read.samples.at(0);
  EXPECT_EQ(sample.label, index / 6);
  const auto channels = static_cast<size_t>(reader.pipeline().channels());
  std::vector<float> planes(channels * sample.picture.pixels.total(), -99.0F);
  reader.pipeline().write(sample.picture, planes.data());
  return planes;
}

std::vector<std::vector<PictureStep>> lists_of_steps() {
  const Normalize normalize{{0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}};
  const OwnTransform halve{"Halve", [](Picture& picture, RandomNumbers& random) {
                             picture = Picture(picture.width() / 2, picture.height() / 2);
                             picture.pixel(8, 7)[0] = static_cast<uint8_t>(random.below(256));
                           }};
  return {{CenterCrop{{20, 40}}},
          {RandomResizedCrop{{24, 16}}},
          {RandomVerticalFlip{}},
          {ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0.5, 1.5}, {-0.2, 0.2}}},
          {RandAugment{}},
          {TrivialAugmentWide{}},
          {normalize, RandomErasing{1}},
          {ResizePicture{36, {}}, RandomCrop{32, 2}, RandomHorizontalFlip{}, normalize},
          {halve, CenterCrop{{14, 12}}},
          {RandomCrop{28, 4}, RandomHorizontalFlip{}, RandAugment{3}, TrivialAugmentWide{},
           ColorJitter{{0.5, 1.5}}, RandomResizedCrop{{20, 20}}, normalize, RandomErasing{}}};
}

PictureReader from_memory(std::vector<PictureStep> steps, int64_t stored, int64_t channels) {
  return {memory_pictures(std::make_shared<DrawnImages>(stored), kImages, "data"),
          PicturePipeline(std::move(steps), 7, false, PicturesAlike{{32, 28}, channels}),
          BadSample::kReplaced, 7};
}

TEST(MemoryPictures, HaveTheBitsOfThePicturesInAFolder) {
  for (const int64_t stored : {3, 1}) {
    const TempFolder folder;
    write_images(folder, stored);
    const auto index = std::make_shared<PictureIndex>(index_folder(folder.path()));
    for (size_t i = 0; i < lists_of_steps().size(); ++i) {
      const PictureReader files(index, PicturePipeline(lists_of_steps()[i], 7),
                                BadSample::kReplaced, 7);
      const PictureReader images = from_memory(lists_of_steps()[i], stored, 3);
      EXPECT_EQ(images.source().size(), kImages);
      std::set<std::vector<float>> different;
      for (int64_t sample = 0; sample < kImages; ++sample) {
        const auto expected = floats_of(files, 2, sample);
        EXPECT_EQ(floats_of(images, 2, sample), expected)
            << stored << " channels, list " << i << ", sample " << sample;
        different.insert(expected);
      }
      EXPECT_GT(different.size(), 1U);
    }
  }
}

// What the steps make of three equal channels are three equal channels.
TEST(MemoryPictures, OfOneChannelAreTheFirstOfThree) {
  const std::vector<std::vector<PictureStep>> all = lists_of_steps();
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<PictureStep> three = all[i], one = all[i];
    const bool own = std::any_of(one.begin(), one.end(), [](const PictureStep& step) {
      return std::holds_alternative<OwnTransform>(step);
    });
    if (own) continue;
    for (auto* steps : {&three, &one}) {
      for (auto& step : *steps) {
        auto* normalize = std::get_if<Normalize>(&step);
        if (normalize == nullptr) continue;
        const size_t count = steps == &one ? 1 : 3;
        *normalize = {std::vector<double>(count, 0.5), std::vector<double>(count, 0.25)};
      }
    }
    const PictureReader colour = from_memory(three, 1, 3), grey = from_memory(one, 1, 1);
    for (int64_t sample = 0; sample < kImages; ++sample) {
      const auto planes = floats_of(colour, 1, sample);
      const auto third = planes.size() / 3;
      const auto first = std::vector(planes.begin(), planes.begin() + std::ssize(planes) / 3);
      EXPECT_EQ(floats_of(grey, 1, sample), first) << i;
      for (size_t at = 0; at < third; ++at) {
        ASSERT_EQ(planes[third + at], planes[at]) << i;
        ASSERT_EQ(planes[2 * third + at], planes[at]) << i;
      }
    }
  }
}

// Another step is all that makes a list one of pictures: its other steps keep their bits.
TEST(MemoryPictures, HaveTheBitsOfImageTransform) {
  const DrawnImages images(3);
  const RandomCrop crop{28, 4};
  const RandomHorizontalFlip flip;
  const Normalize normalize;
  const OwnTransform nothing{"Nothing", PlainTransform([](Picture&) {})};
  const PictureReader reader = from_memory({nothing, crop, nothing, flip, normalize}, 3, 3);
  const ImageTransform at_once({crop, flip, normalize}, images.shape(), 7);
  for (int64_t sample = 0; sample < kImages; ++sample) {
    std::vector<float> expected(static_cast<size_t>(at_once.output().numel()));
    at_once.apply(images.image(sample), 3, sample, expected);
    EXPECT_EQ(floats_of(reader, 3, sample), expected) << sample;
  }
}

TEST(MemoryPictures, OfGreyImagesHaveThreeChannelsForAnOwnTransform) {
  const OwnTransform redden{"Redden", PlainTransform([](Picture& picture) {
                              for (int x = 0; x < picture.width(); ++x)
                                picture.pixel(x, 0)[0] = 255;
                            })};
  const auto planes = floats_of(from_memory({redden}, 1, 3), 0, 2);  // it begins with 22
  const auto plane = planes.size() / 3;
  EXPECT_EQ(planes[0], 1);
  EXPECT_EQ(planes[plane], 22 / 255.0F);
  EXPECT_EQ(planes[2 * plane], 22 / 255.0F);
}

TEST(MemoryPictures, AnOwnTransformThatChangesTheSizeNeedsAStepThatFixesIt) {
  const OwnTransform halve{"Halve", PlainTransform([](Picture& picture) {
                             picture = Picture(picture.width() / 2, picture.height() / 2);
                           })};
  try {
    from_memory({halve}, 3, 3).read(0, std::vector<int64_t>{5});
    ADD_FAILURE() << "no failure";
  } catch (const TransformFailed& failure) {
    EXPECT_STREQ(
        failure.what(),
        "data: image 5: transform_pipeline: Halve changed the size, so the result has 16 x "
        "14 pixels, not 32 x 28: behind it Resize [height, width] or CenterCrop is needed");
  }
  EXPECT_EQ(floats_of(from_memory({halve, RandomCrop{14, 0}}, 3, 3), 0, 5).size(), 3U * 14 * 14);
}

TEST(MemoryPictures, AFaultNamesTheImageAndReplacementsAreOfThoseThatAreUsed) {
  const OwnTransform picky{"Picky", [](Picture& picture) {
                             if (picture.pixel(0, 0)[0] % 2 == 0) {
                               throw Error(ErrorCode::kInvalidArgument, "it is even");
                             }
                           }};
  const auto images = std::make_shared<DrawnImages>(3);  // the first byte of image i is 11 i
  const PictureReader reader(memory_pictures(images, 4, "data/drawn"),
                             PicturePipeline({picky, CenterCrop{{8, 8}}}, 7), BadSample::kReplaced,
                             7);
  const std::vector<int64_t> evens = {0, 2, 0, 2};
  const auto read = reader.read(0, evens);
  ASSERT_EQ(read.faults.size(), evens.size());
  EXPECT_EQ(
      read.faults[1].find("sample 2 cannot be used: data/drawn: image 2: Picky: it is even; "), 0U)
      << read.faults[1];
  for (const auto& sample : read.samples) EXPECT_TRUE(sample.index == 1 || sample.index == 3);
}

}  // namespace
}  // namespace lockstep
