#include "lockstep/ocr/data/regions.h"

#include "tests/data/errors.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

TEST(ParseRegions, ReadsTextsAndCorners) {
  const auto regions = parse_regions(
      R"([{"transcription": "caf\u00e9", "points": [[1, 2], [3.5, 2], [3, 4], [1, 4]]},
          {"transcription": "###", "points": [[0, 0], [1, 0], [1, 1]], "other": {}},
          {"transcription": "*", "points": [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0.5]]}])");
  ASSERT_EQ(regions.size(), 3U);
  EXPECT_EQ(regions[0].text, "caf\xC3\xA9");
  EXPECT_EQ(regions[0].polygon, (Polygon{{1, 2}, {3.5, 2}, {3, 4}, {1, 4}}));
  EXPECT_FALSE(regions[0].ignored);
  EXPECT_TRUE(regions[1].ignored);
  EXPECT_TRUE(regions[2].ignored);
  EXPECT_EQ(regions[2].polygon.size(), 5U);
  EXPECT_TRUE(parse_regions("[]").empty());
}

// A detector does not use such texts, and MindOCR takes them as they are.
TEST(ParseRegions, ATextThatIsNoneIsAsItIsWritten) {
  const auto regions =
      parse_regions(R"([{"transcription": null, "points": [[1, 2], [3, 2], [3, 4], [1, 4]]},
                        {"transcription": 2026, "points": [[1, 2], [3, 2], [3, 4], [1, 4]]}])");
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].text, "null");
  EXPECT_EQ(regions[1].text, "2026");
  EXPECT_FALSE(regions[0].ignored || regions[1].ignored);
}

TEST(ParseRegions, SaysWhatIsWrong) {
  const auto fault = [](const std::string& json) {
    return error_of(ErrorCode::kCorrupt, [&] { parse_regions(json); });
  };
  EXPECT_NE(fault("[{").find("not a JSON list"), std::string::npos);
  EXPECT_NE(fault("{}").find("not a JSON list"), std::string::npos);
  EXPECT_NE(fault("[1]").find("entry 1"), std::string::npos);
  EXPECT_NE(fault(R"([{"points": [[1, 2]]}])").find("transcription"), std::string::npos);
  EXPECT_NE(fault(R"([{"transcription": "a"}])").find("'points'"), std::string::npos);
  EXPECT_NE(fault(R"([{"transcription": "a", "points": []}])").find("'points'"), std::string::npos);
  EXPECT_NE(fault(R"([{"transcription": "a", "points": [[1, 2, 3]]}])").find("point 1"),
            std::string::npos);
  EXPECT_NE(fault(R"([{"transcription": "a", "points": [[1, "2"]]}])").find("numbers"),
            std::string::npos);
  EXPECT_NE(fault(R"([{"transcription": "a", "points": [[1, 1e30]]}])").find("beyond any image"),
            std::string::npos);
}

TEST(IgnoreUnusable, TellsEachRegionWithoutAnInside) {
  std::vector<TextRegion> regions = {
      {{{0, 0}, {9, 0}, {9, 9}, {0, 9}}, "square"},
      {{{0, 0}, {9, 0}, {9, 9}}, "triangle"},
      {{{0, 0}, {9, 9}, {9, 0}, {0, 7}}, "crossing"},
      {{{0, 0}, {5, 0}, {9, 0}, {2, 0}}, "flat"},
      {{{0, 0}, {9, 0}}, "line"},
      {{{0, 0}, {9, 0}, {9, 9}, {5, 1}}, "hollow"},
      {{{0, 0}, {9, 0}}, "###", true},
  };
  std::vector<std::string> remarks;
  ignore_unusable(regions, remarks);
  const std::vector<bool> expected = {false, false, true, true, true, false, true};
  for (size_t i = 0; i < regions.size(); ++i) {
    EXPECT_EQ(regions[i].ignored, expected[i]) << regions[i].text;
  }
  ASSERT_EQ(remarks.size(), 3U);
  EXPECT_NE(remarks[0].find("region 3 ('crossing') has Self-intersection"), std::string::npos)
      << remarks[0];
  EXPECT_EQ(remarks[1], "region 4 ('flat') has no area: ignored");
  EXPECT_EQ(remarks[2], "region 5 ('line') has 2 corners: ignored");
}

}  // namespace
}  // namespace lockstep::ocr
