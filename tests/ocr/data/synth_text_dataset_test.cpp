#include "lockstep/ocr/data/synth_text_dataset.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"
#include "tests/ocr/data/write_mat.h"

namespace lockstep::ocr {
namespace {

using testing::boxes;
using testing::error_of;
using testing::TempDir;
using testing::text;
using testing::write_mat;

TEST(SynthTextDataset, ReadsNamesBoxesAndWords) {
  const TempDir dir;
  write_mat(dir / "gt.mat", {{"imnames", {text({"8/a.jpg"}), text({"9/bb.jpg"})}},
                             {"wordBB",
                              {boxes({1,  2,  3,  4,  5,  6,  7,  8.5F, 11, 12, 13, 14,
                                      15, 16, 17, 18, 21, 22, 23, 24,   25, 26, 27, 28}),
                               boxes({0, 1, 2, 3, 4, 5, 6, 7})}},
                             {"txt", {text({"two\nwords ", "three     "}), text({"one"})}}});
  const SynthTextDataset data("/pictures", dir / "gt.mat");
  ASSERT_EQ(data.size(), 2);
  const Sample sample = data.load(0);
  EXPECT_EQ(sample.source, "/pictures/8/a.jpg");
  ASSERT_EQ(sample.regions.size(), 3U);
  EXPECT_EQ(sample.regions[0].polygon, (Polygon{{1, 2}, {3, 4}, {5, 6}, {7, 8.5F}}));
  EXPECT_EQ(sample.regions[0].text, "two");
  EXPECT_EQ(sample.regions[1].text, "words");
  EXPECT_EQ(sample.regions[2].text, "three");
  EXPECT_EQ(sample.regions[2].polygon[3], cv::Point2f(27, 28));
  EXPECT_FALSE(sample.regions[2].ignored);
  EXPECT_EQ(data.load(1).regions.at(0).polygon[3], cv::Point2f(6, 7));
}

TEST(SynthTextDataset, BoxesWithoutWordsAreABadSample) {
  const TempDir dir;
  write_mat(dir / "gt.mat", {{"imnames", {text({"a.jpg"})}},
                             {"wordBB", {boxes({0, 1, 2, 3, 4, 5, 6, 7})}},
                             {"txt", {text({"one two"})}}});
  const SynthTextDataset data(dir.path(), dir / "gt.mat");
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { data.load(0); }).find("1 boxes for 2 words"),
            std::string::npos);
}

TEST(SynthTextDataset, ABoxOutsideAnyImageIsABadSample) {
  const TempDir dir;
  for (const float wrong : {NAN, -INFINITY, 2e6F}) {
    write_mat(dir / "gt.mat", {{"imnames", {text({"a.jpg"})}},
                               {"wordBB", {boxes({0, 1, 2, 3, wrong, 5, 6, 7})}},
                               {"txt", {text({"one"})}}});
    const SynthTextDataset data("/pictures", dir / "gt.mat");
    const auto fault = error_of(ErrorCode::kCorrupt, [&] { data.load(0); });
    EXPECT_NE(fault.find("gt.mat:1 (/pictures/a.jpg): a coordinate of "), std::string::npos);
  }
}

TEST(SynthTextDataset, RefusesOtherFiles) {
  const TempDir dir;
  const auto refused = [&](ErrorCode code) {
    return error_of(code, [&] { SynthTextDataset(dir.path(), dir / "gt.mat"); });
  };
  refused(ErrorCode::kNotFound);
  testing::write_text(dir / "gt.mat",
                      "not a MATLAB file, though it is long enough for a header, "
                      "which takes 128 bytes of text, a version and a mark......");
  refused(ErrorCode::kCorrupt);
  write_mat(dir / "gt.mat", {{"imnames", {text({"a.jpg"})}}});
  EXPECT_NE(refused(ErrorCode::kCorrupt).find("'wordBB'"), std::string::npos);
  write_mat(dir / "gt.mat", {{"imnames", {boxes({0, 1, 2, 3, 4, 5, 6, 7})}}});
  EXPECT_NE(refused(ErrorCode::kCorrupt).find("imnames{1}"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::ocr
