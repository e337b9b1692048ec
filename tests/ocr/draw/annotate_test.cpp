#include "lockstep/ocr/draw/annotate.h"

#include <opencv2/imgproc.hpp>

#include "tests/data/errors.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

cv::Mat canvas() {
  return cv::Mat(200, 300, CV_8UC3, cv::Scalar(90, 90, 90));
}

Polygon box(float x, float y, float width, float height) {
  return {{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}};
}

// The part of `image` that differs from the canvas.
cv::Rect changed(const cv::Mat& image) {
  cv::Mat difference;
  cv::absdiff(image, canvas(), difference);
  cv::Mat any;
  cv::cvtColor(difference, any, cv::COLOR_BGR2GRAY);
  return cv::boundingRect(any);
}

int greenish(const cv::Mat& image) {
  cv::Mat found;
  cv::inRange(image, cv::Scalar(0, 180, 0), cv::Scalar(60, 255, 60), found);
  return cv::countNonZero(found);
}

TEST(Annotate, DrawsARedOutlineAndLeavesTheOriginalAlone) {
  const cv::Mat image = canvas();
  const Annotation one{box(50, 80, 100, 40), ""};
  const cv::Mat drawn = annotate(image, {&one, 1});
  EXPECT_EQ(drawn.at<cv::Vec3b>(80, 100), cv::Vec3b(0, 0, 255));
  EXPECT_EQ(drawn.at<cv::Vec3b>(100, 150), cv::Vec3b(0, 0, 255));
  EXPECT_EQ(drawn.at<cv::Vec3b>(100, 100), cv::Vec3b(90, 90, 90));  // not filled
  EXPECT_EQ(changed(drawn), cv::Rect(50, 80, 101, 41));
  EXPECT_EQ(cv::norm(image, canvas(), cv::NORM_INF), 0);
}

TEST(Annotate, WritesTextAboveTheOutline) {
  const Annotation one{box(50, 80, 100, 40), "word"};
  const cv::Mat drawn = annotate(canvas(), {&one, 1});
  EXPECT_GT(greenish(drawn), 20);
  EXPECT_LT(changed(drawn).y, 75);
  EXPECT_LE(changed(drawn).x + changed(drawn).width, 151);
}

TEST(Annotate, TextStaysInsideThePicture) {
  const Annotation one{box(280, 0, 19, 20), "a long word at the edge"};
  const cv::Mat drawn = annotate(canvas(), {&one, 1});
  EXPECT_GT(greenish(drawn), 100);
  EXPECT_LT(changed(drawn).x, 250);
}

TEST(Annotate, OtherTextsLookOtherwise) {
  const Annotation one{box(50, 80, 100, 40), "word"};
  const Annotation other{box(50, 80, 100, 40), "wörd"};
  EXPECT_GT(cv::norm(annotate(canvas(), {&one, 1}), annotate(canvas(), {&other, 1}), cv::NORM_L1),
            0);
}

TEST(Annotate, LettersComeFromTheFontThatIsGiven) {
  const Annotation one{box(50, 80, 100, 40), "word"};
  const std::string family = add_font("/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf");
  EXPECT_EQ(family, "DejaVu Serif");
  EXPECT_GT(cv::norm(annotate(canvas(), {&one, 1}), annotate(canvas(), {&one, 1}, family)), 0);
  error_of(ErrorCode::kNotFound, [] { add_font("/nowhere/simfang.ttf"); });
  error_of(ErrorCode::kCorrupt, [] { add_font("/dev/null"); });
}

TEST(Annotate, GrayPicturesGetColours) {
  const Annotation one{box(5, 8, 10, 4), ""};
  const cv::Mat drawn = annotate(cv::Mat(20, 30, CV_8UC1, cv::Scalar(7)), {&one, 1});
  EXPECT_EQ(drawn.at<cv::Vec3b>(8, 10), cv::Vec3b(0, 0, 255));
  EXPECT_EQ(drawn.at<cv::Vec3b>(0, 0), cv::Vec3b(7, 7, 7));
}

TEST(Annotate, RefusesOtherPictures) {
  error_of(ErrorCode::kInvalidArgument, [] { annotate(cv::Mat(4, 4, CV_32F), {}); });
  error_of(ErrorCode::kInvalidArgument, [] { annotate(cv::Mat(), {}); });
}

}  // namespace
}  // namespace lockstep::ocr
