#include "lockstep/ocr/data/label_line.h"

#include "tests/data/errors.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

TEST(LabelLine, SplitsAtTheTabOrAtTheOnlyBlank) {
  const auto tab = split_label_line("word 1.png\tGenaxis Theatre\r\n", "f:1");
  EXPECT_EQ(tab.image, "word 1.png");
  EXPECT_EQ(tab.label, "Genaxis Theatre");
  const auto blank = split_label_line("a.png text", "f:1");
  EXPECT_EQ(blank.image, "a.png");
  EXPECT_EQ(blank.label, "text");
  EXPECT_EQ(split_label_line("a.png\t\xE3\x80\x80", "f:1").label, "\xE3\x80\x80");
}

TEST(LabelLine, FaultsNameFileAndLine) {
  const auto fault = [](const std::string& line) {
    return error_of(ErrorCode::kCorrupt, [&] { split_label_line(line, "gt.txt:7"); });
  };
  EXPECT_EQ(fault("a.png").substr(0, 51), "gt.txt:7: neither tab nor blank between image and l");
  EXPECT_EQ(fault("a.png\tb\tc").substr(0, 16), "gt.txt:7: 2 tabs");
  EXPECT_EQ(fault("a.png b c").substr(0, 26), "gt.txt:7: no tab but 2 bla");
  EXPECT_EQ(fault("a.png\t\xFF"), "gt.txt:7: not UTF-8");
  EXPECT_EQ(fault(std::string("a\0.png\tx", 8)), "gt.txt:7: a zero byte: no text");
  EXPECT_EQ(fault("a.png\t\r\n").substr(0, 41), "gt.txt:7: nothing on one side of the tab;");
  EXPECT_EQ(fault("\tabc").substr(0, 41), "gt.txt:7: nothing on one side of the tab;");
  EXPECT_EQ(fault("a.png\t" + std::string(16 << 20, 'x')),
            "gt.txt:7: a line of 16777222 bytes; allowed: 16777216");
}

TEST(LabelFile, KeepsLineNumbersPastEmptyLinesAndAByteOrderMark) {
  const auto lines = split_label_file(
      "\xEF\xBB\xBF"
      "a.png\tx\r\n\r\n\nb.png\ty",
      "f");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].image, "a.png");
  EXPECT_EQ(lines[0].number, 1);
  EXPECT_EQ(lines[1].label, "y");
  EXPECT_EQ(lines[1].number, 4);
}

TEST(LabelFile, ALineWithAFaultSaysWhichAndTheOthersAreRead) {
  const auto lines = split_label_file("a b\nc\nd e\n", "f");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].fault.substr(0, 11), "f:2: neithe");
  EXPECT_TRUE(lines[2].fault.empty());
  EXPECT_EQ(lines[2].image, "d");
}

}  // namespace
}  // namespace lockstep::ocr
