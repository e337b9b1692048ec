#include "lockstep/ocr/data/label_file_dataset.h"

#include "lockstep/ocr/data/line_file.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

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

TEST(LineFile, KeepsLineNumbersPastEmptyLinesAndAByteOrderMark) {
  const testing::TempDir dir;
  testing::write_text(dir / "f",
                      "\xEF\xBB\xBF"
                      "a.png\tx\r\n\r\n\nb.png\ty");
  const LineFile file(dir / "f");
  std::vector<FileLine> places;
  file.scan([&](const std::string& line, FileLine place) {
    EXPECT_EQ(file.read(place), line);
    places.push_back(place);
  });
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].number, 1U);
  EXPECT_EQ(file.read(places[0]), "a.png\tx\r");
  EXPECT_EQ(places[1].number, 4U);
  EXPECT_EQ(file.read(places[1]), "b.png\ty");
}

TEST(LineFile, AFileThatBecameShorterOrIsNoneIsNamed) {
  const testing::TempDir dir;
  testing::write_text(dir / "f", "a.png\tx\nb.png\ty\n");
  const LineFile file(dir / "f");
  std::filesystem::resize_file(dir / "f", 3);
  EXPECT_EQ(
      error_of(ErrorCode::kCorrupt, [&] { file.read({.offset = 8, .size = 7, .number = 2}); }),
      (dir / "f").string() + ":2: the file has become shorter");
  error_of(ErrorCode::kNotFound, [&] { LineFile{dir / "g"}; });
  error_of(ErrorCode::kIo, [&] { LineFile(dir.path()).scan([](const std::string&, FileLine) {}); });
}

}  // namespace
}  // namespace lockstep::ocr
