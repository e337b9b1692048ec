// The drawn text, and its reported outline.
#include <gtest/gtest.h>

#include <cctype>
#include <opencv2/imgproc.hpp>
#include <set>

#include "lockstep/ocr/synth/ink.h"
#include "lockstep/ocr/synth/scene.h"
#include "lockstep/ocr/synth/words.h"
#include "tests/support/error_of.h"

namespace lockstep::ocr {
namespace {

std::vector<cv::Point2f> outline(const Corners& corners) {
  return {corners.begin(), corners.end()};
}

TEST(DrawText, IsShortAndOfLettersAndDigits) {
  std::set<char> seen;
  for (uint64_t i = 0; i < 2000; ++i) {
    Dice dice(1, 0, i);
    const std::string text = draw_text(dice);
    EXPECT_GE(text.size(), 2U);
    EXPECT_LE(text.size(), 10U);
    for (const char letter : text) {
      EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(letter))) << text;
      seen.insert(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
    }
  }
  EXPECT_EQ(seen.size(), 36U);  // every class can be learnt
}

/// The distance of the ink to each of the four edges.
std::array<double, 4> ink_to_edges(const cv::Mat& image, const Corners& seen) {
  std::array<double, 4> nearest = {1e9, 1e9, 1e9, 1e9};
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) {
      if (image.at<cv::Vec3b>(y, x)[0] < 100) continue;
      const cv::Point2d centre(x + 0.5, y + 0.5);
      EXPECT_GT(cv::pointPolygonTest(outline(seen), centre, true), -0.75);
      for (size_t k = 0; k < 4; ++k) {
        const cv::Point2d edge = seen[(k + 1) % 4] - seen[k];
        const double distance = std::abs(edge.cross(centre - seen[k])) / cv::norm(edge);
        nearest[k] = std::min(nearest[k], distance);
      }
    }
  }
  return nearest;
}

// White on black: every pixel with ink is inside the outline, and all four edges are near ink.
TEST(Paint, InkFillsTheMappedBox) {
  TextPen pen(find_fonts());
  for (uint64_t i = 0; i < 40; ++i) {
    Dice dice(2, 0, i);
    const auto font = static_cast<size_t>(dice.whole(0, static_cast<int>(pen.fonts()) - 1));
    TextMask mask = pen.draw(draw_text(dice), font, dice.real(20, 60));
    mask.alpha.setTo(255, mask.alpha);  // the faintness of a letter's edge depends on the font
    Corners seen = draw_view(dice, mask.box, mask.box.height, synth_style("hard"));
    const cv::Rect2d reach = bounds_of(seen);
    for (cv::Point2d& corner : seen) corner += cv::Point2d(10 - reach.x, 10 - reach.y);
    cv::Mat image = cv::Mat::zeros(static_cast<int>(reach.height) + 20,
                                   static_cast<int>(reach.width) + 20, CV_8UC3);
    paint(image, mask, view_matrix(mask.box, seen), {cv::Scalar::all(255), {}, {}, {}});
    for (const double distance : ink_to_edges(image, seen)) EXPECT_LT(distance, 1.6) << i;
  }
}

TEST(DrawScene, WordsLieInThePictureApartFromEachOther) {
  TextPen pen(find_fonts());
  size_t words = 0, illegible = 0;
  for (uint64_t i = 0; i < 30; ++i) {
    Dice dice(3, 0, i);
    const SynthScene scene = draw_scene(dice, pen, {480, 320}, synth_style("normal"));
    EXPECT_EQ(scene.image.size(), cv::Size(480, 320));
    for (size_t a = 0; a < scene.words.size(); ++a) {
      const cv::Rect2d box = bounds_of(scene.words[a].corners);
      EXPECT_EQ(box & cv::Rect2d(0, 0, 480, 320), box);
      EXPECT_GT(cv::contourArea(outline(scene.words[a].corners), true), 4.0);  // clockwise
      for (size_t b = 0; b < a; ++b) {
        cv::Mat common;
        EXPECT_LT(cv::intersectConvexConvex(outline(scene.words[a].corners),
                                            outline(scene.words[b].corners), common),
                  0.01F);
      }
      (scene.words[a].text == "###" ? illegible : words) += 1;
    }
  }
  EXPECT_GT(words, 90U);
  EXPECT_GT(illegible, 5U);
}

TEST(DrawWord, HasTheRowsThatRecognisersTake) {
  TextPen pen(find_fonts());
  for (uint64_t i = 0; i < 50; ++i) {
    Dice dice(4, 0, i);
    const SynthWord word = draw_word(dice, pen, synth_style("easy"));
    EXPECT_GE(word.image.rows, 32);
    EXPECT_LE(word.image.rows, 64);
    cv::Scalar mean, spread;
    cv::meanStdDev(word.image, mean, spread);
    EXPECT_GT(brightness(spread), 10) << word.text;  // the text is visible
  }
}

TEST(SynthStyle, UnknownDifficultyNamesTheNearest) {
  const Error error = error_of([] { synth_style("noraml"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(),
               "unknown difficulty 'noraml', did you mean 'normal'? (known: easy, normal, hard)");
}

}  // namespace
}  // namespace lockstep::ocr
