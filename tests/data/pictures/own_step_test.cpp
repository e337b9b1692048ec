// Transforms of a program's own within a pipeline.

#include "lockstep/data/pictures/own_step.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "lockstep/data/pictures/pipeline.h"
#include "tests/data/pictures/drawn.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

OwnTransform own_step(PictureTransform transform) {
  return {"Mine", std::move(transform)};
}

void make_negative(Picture& picture) {
  for (uint8_t& byte : picture.bytes()) byte = static_cast<uint8_t>(255 - byte);
}

void halve(Picture& picture) {
  picture = Picture(picture.width() / 2, picture.height() / 2);
}

cv::Mat made_by(std::vector<PictureStep> steps, const cv::Mat& picture, int64_t epoch = 0,
                int64_t index = 0) {
  return PicturePipeline(std::move(steps), 7).apply(picture, epoch, index).pixels;
}

std::string failure_of(std::vector<PictureStep> steps) {
  try {
    made_by(std::move(steps), drawn_picture(20, 15));
  } catch (const TransformFailed& failure) {
    return failure.what();
  }
  return "no failure";
}

TEST(OwnStep, ChangesThePictureInItsPlace) {
  const OwnTransform negative = own_step(make_negative);
  const cv::Mat drawn = drawn_picture(20, 15);
  const CenterCrop crop{{6, 4}};
  auto expected = bytes_of(made_by({crop}, drawn));
  for (int& byte : expected) byte = 255 - byte;
  EXPECT_EQ(bytes_of(made_by({crop, negative}, drawn)), expected) << "of a larger matrix";
  EXPECT_EQ(bytes_of(made_by({negative, crop}, drawn)), expected);
  EXPECT_EQ(bytes_of(drawn), bytes_of(drawn_picture(20, 15))) << "the original stays";
}

TEST(OwnStep, HasPixelsByColumnAndRow) {
  const auto mark = own_step([](Picture& picture) {
    EXPECT_EQ(picture.width(), 5);
    EXPECT_EQ(picture.height(), 3);
    const Picture copy = picture;
    EXPECT_EQ(copy.pixel(4, 1)[2], 37 * 4 + 59 + 83 * 2 + 7 * 4 - 256);
    std::ranges::copy(std::array<uint8_t, 3>{1, 2, 3}, picture.pixel(4, 1).begin());
  });
  auto expected = bytes_of(drawn_picture(5, 3));
  for (size_t c = 0; c < 3; ++c) expected[(5 + 4) * 3 + c] = static_cast<int>(c + 1);
  EXPECT_EQ(bytes_of(made_by({mark}, drawn_picture(5, 3))), expected);
}

TEST(OwnStep, DrawsTheWordsOfItsSampleInTurn) {
  std::vector<uint32_t> words;
  const auto draws =
      own_step([&](Picture&, RandomNumbers& random) { words.push_back(random.next()); });
  made_by({draws, RandomHorizontalFlip{}, draws}, drawn_picture(4, 4), 3, 11);
  Philox expected(7, 3, 11);
  const uint32_t first = expected.next();
  expected.uniform();  // the flip
  EXPECT_EQ(words, (std::vector<uint32_t>{first, expected.next()}));
}

TEST(OwnStep, DrawsAsBuiltInOnesDo) {
  const auto draws = own_step([](Picture&, RandomNumbers& random) {
    Philox expected(7, 0, 0);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(random.below(10), expected.below(10));
      EXPECT_EQ(random.uniform(), expected.uniform());
    }
  });
  made_by({draws}, drawn_picture(4, 4));
}

TEST(OwnStep, MayChangeTheSize) {
  const auto half = own_step(halve);
  EXPECT_EQ(made_by({half}, drawn_picture(20, 15)).size(), cv::Size(10, 7));
  const ResizePicture exact{0, {8, 6}};
  EXPECT_EQ(made_by({exact, half, CenterCrop{{9, 9}}}, drawn_picture(20, 15)).size(),
            cv::Size(9, 9));
  EXPECT_EQ(failure_of({exact, half}),
            "transform_pipeline: Mine changed the size, so the result has 4 x 3 pixels, not 8 x "
            "6: behind it Resize [height, width] or CenterCrop is needed");
}

TEST(OwnStep, ErrorsHaveItsName) {
  const auto picky = own_step(
      [](Picture&) { throw Error(ErrorCode::kInvalidArgument, "there is nothing in it"); });
  const auto error = error_of([&] { made_by({picky}, drawn_picture(4, 4)); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(), "Mine: there is nothing in it");
  EXPECT_EQ(failure_of({own_step([](Picture&) { throw std::out_of_range("no such row"); })}),
            "the transform Mine failed: no such row");
  EXPECT_EQ(failure_of({own_step([](Picture&) { throw 42; })}),
            "the transform Mine failed: its exception is no std::exception");
  EXPECT_EQ(failure_of({own_step([](Picture& picture) { picture = Picture(picture.width(), 0); })}),
            "the transform Mine failed: no picture can have 20 x 0 pixels");
  EXPECT_EQ(failure_of({own_step([](Picture&, RandomNumbers& random) { random.below(0); })}),
            "the transform Mine failed: no random number is below 0");
  EXPECT_EQ(failure_of({own_step([](Picture& picture) { Picture taken = std::move(picture); })}),
            "the transform Mine has moved its picture away");
}

TEST(OwnStep, StandsBeforeNormalize) {
  const auto error = error_of([] {
    PicturePipeline({Normalize{}, own_step(make_negative)}, /*seed=*/7);
  });
  EXPECT_STREQ(error.what(), "transform_pipeline: behind Normalize only RandomErasing may follow");
}

TEST(Picture, IsBlackAndOfAPossibleSize) {
  const Picture picture(3, 2);
  EXPECT_EQ(picture.bytes().size(), 18u);
  EXPECT_EQ(std::ranges::count(picture.bytes(), 0), 18);
  EXPECT_THROW(Picture(0, 1), std::invalid_argument);
  EXPECT_THROW(Picture(1, -1), std::invalid_argument);
  EXPECT_THROW(Picture(1 << 15, 1 << 15), std::invalid_argument);
}

}  // namespace
}  // namespace lockstep
