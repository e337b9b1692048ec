// Photographs, if present (see CMakeLists.txt): decoding and transforms give what Pillow and
// torchvision give, by the digests of photo_expected.h.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/data/mixing.h"
#include "lockstep/data/pictures/augment.h"
#include "lockstep/data/pictures/pipeline.h"
#include "tests/data/pictures/drawn.h"
#include "tests/data/pictures/photo_expected.h"
#include "tests/data/pictures/reference.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

constexpr uint64_t kPhotoSeed = 7;
constexpr int64_t kPhotoEpoch = 1;
constexpr int kSide = 224;
constexpr int kNumPhotos = static_cast<int>(std::size(kPhotos));

using Planes = std::vector<float>;

double mean_of(const cv::Mat& picture) {
  const cv::Scalar means = cv::mean(picture);
  return (means[0] + means[1] + means[2]) / 3;
}
double mean_of(const Planes& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

cv::Rect rect_of(const PhotoBox& box) {
  return {box.left, box.top, box.width, box.height};
}

/// Photographs as a data set reads them, and a group of results that are expected of them.
class RealPhotos : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    const std::string archive = env_or("LOCKSTEP_TEST_DATA", "") + "/ocr_det/train.zip";
    const std::string command =
        "/usr/bin/python3 -m zipfile -e " + archive + " " + folder_->path().string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    for (const char* name : kPhotos) {
      photos_.push_back(read_picture(*folder_ / (std::string("train_images/") + name + ".jpg")));
    }
  }
  static void TearDownTestSuite() {
    photos_.clear();
    folder_.reset();
  }

  /// Bytes or floats: each is the expected one. If not, the means tell a fault from a rounding.
  template <typename Result>
  void expect(int photo, const std::string& group, const std::string& name, const Result& result) {
    const auto found = std::find_if(
        std::begin(kExpectedPhotos), std::end(kExpectedPhotos), [&](const ExpectedPhoto& row) {
          return row.photo == photo && row.group == group && row.name == name;
        });
    ASSERT_NE(found, std::end(kExpectedPhotos)) << group << ": " << name;
    EXPECT_EQ(digest_of(result), found->digest)
        << group << ": " << name << " of " << kPhotos[photo] << ": the mean is " << mean_of(result)
        << ", expected is " << found->mean;
    ++compared_;
  }
  /// Nothing that is expected was left out.
  void expect_all_of(const std::string& group) const {
    EXPECT_EQ(compared_, std::count_if(std::begin(kExpectedPhotos), std::end(kExpectedPhotos),
                                       [&](const auto& row) { return row.group == group; }));
    EXPECT_GT(compared_, 0);
  }

  static cv::Mat part_of(int photo) {
    return photos_[static_cast<size_t>(photo)](rect_of(kPhotoPart[0]));
  }
  static MadePicture made(const std::vector<PictureStep>& steps, const cv::Mat& picture,
                          int photo) {
    return PicturePipeline(steps, kPhotoSeed).apply(picture, kPhotoEpoch, photo);
  }
  /// ImageNet's evaluation.
  static cv::Mat evaluated(int photo) {
    return made({ResizePicture{256, {}}, CenterCrop{{kSide, kSide}}},
                photos_[static_cast<size_t>(photo)], photo)
        .pixels;
  }
  static Planes floats_of(const std::vector<PictureStep>& steps, int photo) {
    const MadePicture result = made(steps, evaluated(photo), photo);
    Planes planes(3 * result.pixels.total());
    PicturePipeline(steps, kPhotoSeed).write(result, planes.data());
    return planes;
  }

  static inline std::unique_ptr<TempFolder> folder_;
  static inline std::vector<cv::Mat> photos_;

 private:
  int64_t compared_ = 0;
};

TEST_F(RealPhotos, AreDecodedToPillowsBytes) {
  for (int photo = 0; photo < kNumPhotos; ++photo) {
    expect(photo, "decode", "file", photos_[static_cast<size_t>(photo)]);
    const cv::Mat part = part_of(photo).clone();
    for (const std::string kind : {"png", "webp"}) {  // OpenCV's WebP is lossless unless told
      write_picture(*folder_ / ("part." + kind), part);
      expect(photo, "decode", kind, read_picture(*folder_ / ("part." + kind)));
    }
    for (const auto& [kind, bytes] : jpegs_of(part)) {
      const cv::Mat out = read_as_file(bytes, *folder_ / "part.jpg");
      if (kind != "four inks") {
        expect(photo, "decode", kind, out);
        continue;
      }
      const cv::Mat pillows = rgb_of_inks(ocr::inks_of_jpeg(bytes));
      expect(photo, "decode", kind, pillows);
      EXPECT_LE(cv::norm(out, pillows, cv::NORM_INF), 2);
      EXPECT_NEAR(mean_of(out), mean_of(pillows), 1);
    }
  }
  expect_all_of("decode");
}

TEST_F(RealPhotos, HaveTorchvisionsBytesInOtherSizes) {
  for (int photo = 0; photo < kNumPhotos; ++photo) {
    const cv::Mat& whole = photos_[static_cast<size_t>(photo)];
    expect(photo, "size", "evaluation", evaluated(photo));
    expect(photo, "size", "center crop with border",
           made({CenterCrop{{800, 800}}}, whole, photo).pixels);
    cv::Rect drawn;
    const Undecoded undecoded = [&](const ocr::ChoosePart& choose) {
      drawn = choose(whole.size()).part;
      return whole(drawn);
    };
    const PicturePipeline crop({RandomResizedCrop{{kSide, kSide}}}, kPhotoSeed);
    expect(photo, "size", "random resized crop", crop.apply(undecoded, kPhotoEpoch, photo).pixels);
    EXPECT_EQ(drawn, rect_of(kPhotoCrops[photo]));
    const cv::Mat part = part_of(photo);
    expect(photo, "size", "enlarged", made({ResizePicture{0, {700, 500}}}, part, photo).pixels);
    expect(photo, "size", "left and right", made({RandomHorizontalFlip{1}}, part, photo).pixels);
    expect(photo, "size", "top and bottom", made({RandomVerticalFlip{1}}, part, photo).pixels);
  }
  expect_all_of("size");
}

TEST_F(RealPhotos, HaveTorchvisionsBytesInOtherColours) {
  const std::array<std::array<double, 2>, 4> factors = {
      {{0.6, 1.4}, {0.6, 1.4}, {0.6, 1.4}, {-0.1, 0.2}}};
  const auto jitter = [&](size_t kind, size_t which) {
    ColorJitter one;
    const std::array<std::pair<double, double>*, 4> ranges = {&one.brightness, &one.contrast,
                                                              &one.saturation, &one.hue};
    *ranges.at(kind) = std::pair(factors.at(kind).at(which), factors.at(kind).at(which));
    return one;
  };
  const ColorJitter all{{1.4, 1.4}, {1.4, 1.4}, {1.4, 1.4}, {0.2, 0.2}};
  for (int photo = 0; photo < kNumPhotos; ++photo) {
    const cv::Mat small = evaluated(photo);
    for (size_t kind = 0; kind < factors.size(); ++kind) {
      for (const size_t which : {size_t{0}, size_t{1}}) {
        expect(photo, "colour", fmt::format("{} {}", kind, which),
               made({jitter(kind, which)}, small, photo).pixels);
      }
    }
    expect(photo, "colour", "all", made({all}, small, photo).pixels);
  }
  expect_all_of("colour");
}

// RandAugment's strength 9 of 31, and the greatest one of TrivialAugmentWide.
TEST_F(RealPhotos, HaveTorchvisionsBytesAfterEachAugmentation) {
  const std::array<std::pair<AugmentTable, int64_t>, 2> tables = {
      {{AugmentTable::kRand, 9}, {AugmentTable::kTrivialWide, 30}}};
  for (int photo = 0; photo < kNumPhotos; ++photo) {
    const cv::Mat small = evaluated(photo);
    for (size_t table = 0; table < tables.size(); ++table) {
      const auto& [name, bin] = tables.at(table);
      for (int i = 0; i < kNumAugments; ++i) {
        const auto kind = static_cast<Augment>(i);
        const double strength = augment_strength(name, kind, bin, 31, small.size());
        for (const int sign : {1, -1}) {
          if (sign < 0 && !has_sign(kind)) continue;
          expect(photo, "augment", fmt::format("{} {} {}", table, i, sign),
                 with_augment(kind, sign * strength, small));
        }
      }
    }
  }
  expect_all_of("augment");
}

// Every bit. torchvision rounds a share of 64 bits and the rest of it to 32 bits each; kPhotoShares
// have 32, so that the rest is the same either way.
TEST_F(RealPhotos, HaveTorchvisionsFloats) {
  const Normalize imagenet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  const RandomErasing erasing{1, {0.02, 0.33}, {0.3, 3.3}, {0.5, -1, 2}};
  const ImageShape shape{3, kSide, kSide};
  const std::vector<int64_t> samples = {0, 1, 2};
  Planes batch;
  for (int photo = 0; photo < kNumPhotos; ++photo) {
    const Planes normalized = floats_of({imagenet}, photo);
    expect(photo, "floats", "normalized", normalized);
    expect(photo, "floats", "erased", floats_of({imagenet, erasing}, photo));
    EXPECT_EQ(made({imagenet, erasing}, evaluated(photo), photo).erased,
              rect_of(kPhotoErased[photo]));
    batch.insert(batch.end(), normalized.begin(), normalized.end());
  }
  const std::array<std::pair<const char*, Mixing>, 2> mixings = {
      {{"mixed", {MixUp{0.8, 1}, {}}}, {"cut", {{}, CutMix{1, 1}}}}};
  for (const auto& [name, mixing] : mixings) {
    Planes pixels = batch, targets(9);
    mix(mixing, kPhotoSeed, kPhotoEpoch,
        {samples, samples, shape, 3, pixels.data(), targets.data()});
    for (int photo = 0; photo < kNumPhotos; ++photo) {
      const auto mixture = draw_mixture(mixing, kPhotoSeed, kPhotoEpoch, photo, shape);
      const auto& box = mixture.box;
      if (box) {
        EXPECT_EQ(cv::Rect(box->left, box->top, box->width, box->height),
                  rect_of(kPhotoCuts[photo]));
      } else {
        EXPECT_EQ(static_cast<float>(mixture.share), kPhotoShares[photo]);
      }
      const auto begin = pixels.begin() + photo * shape.numel();
      expect(photo, "floats", name, Planes(begin, begin + shape.numel()));
    }
  }
  expect_all_of("floats");
}

}  // namespace
}  // namespace lockstep
