#include "lockstep/base/text.h"

#include <gtest/gtest.h>

#include <array>

#include "lockstep/base/counted.h"
#include "lockstep/version.h"

namespace lockstep {
namespace {

TEST(Text, NearestNameForgivesSmallSlips) {
  const std::vector<std::string> names = {"batch_size", "num_workers", "lr"};
  EXPECT_EQ(nearest_name("batchsize", names), "batch_size");
  EXPECT_EQ(nearest_name("num_worker", names), "num_workers");
  EXPECT_EQ(nearest_name("something_else", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(Text, CaseCountsLessThanAnyLetter) {
  const std::vector<std::string> names = {"adam", "adamw", "SGD"};
  EXPECT_EQ(nearest_name("adamW", names), "adamw");
  EXPECT_EQ(nearest_name("ADAMW", names), "adamw");
  EXPECT_EQ(nearest_name("sgd", names), "SGD");
  EXPECT_EQ(nearest_name("Adan", names), "");
}

TEST(Text, SwappedLettersAreOneSlipAndShortNamesForgiveOne) {
  const std::vector<std::string> names = {"bf16", "LANG"};
  EXPECT_EQ(nearest_name("bf61", names), "bf16");
  EXPECT_EQ(nearest_name("fb16", names), "bf16");
  EXPECT_EQ(nearest_name("fb61", names), "");
  EXPECT_EQ(nearest_name("RANK", names), "");
  const std::vector<std::string> verbs = {"stop", "ps", "run"};
  EXPECT_EQ(nearest_name("top", verbs), "") << "it would end a job";
  EXPECT_EQ(nearest_name("sp", verbs), "ps");
  EXPECT_EQ(nearest_name("rnu", verbs), "run");
  EXPECT_EQ(nearest_name("rum", verbs), "run");
}

TEST(Text, HexDigitsAreTwoOfEachByte) {
  EXPECT_EQ(hex_digits({}), "");
  EXPECT_EQ(hex_digits(std::array<uint8_t, 3>{0x00, 0x0f, 0xa5}), "000fa5");
}

TEST(Text, RunsOfNumbersAreJoinedFromALeastLengthOn) {
  EXPECT_EQ(runs_of({}, ",", 2), "");
  EXPECT_EQ(runs_of({0, 1, 3, 4, 5, 9}, ",", 2), "0-1,3-5,9");
  EXPECT_EQ(runs_of({0, 1, 3, 4, 5, 9}, "; ", 3), "0; 1; 3-5; 9");
}

TEST(Text, ShortenedCutsBetweenCharacters) {
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abcd...");
  EXPECT_EQ(shortened("abc\xc3\xa4x", 4), "abc...");
  EXPECT_EQ(shortened("abc\xc3\xa4x", 5), "abc\xc3\xa4...");
  EXPECT_EQ(shortened("", 0), "");
  EXPECT_EQ(shortened("a", 0), "...");
}

TEST(Text, CellsOfCsvAndTextOfXml) {
  EXPECT_EQ(csv_cell("a b"), "a b");
  EXPECT_EQ(csv_cell("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
  EXPECT_EQ(xml_text("a<b>&\""), "a&lt;b&gt;&amp;\"");
}

TEST(Text, Durations) {
  using std::chrono::seconds;
  EXPECT_EQ(format_duration(seconds(-3)), "0:00");
  EXPECT_EQ(format_duration(seconds(7)), "0:07");
  EXPECT_EQ(format_duration(seconds(754)), "12:34");
  EXPECT_EQ(format_duration(seconds(3723)), "1:02:03");
  EXPECT_EQ(format_duration(seconds(2 * 86400 + 3 * 3600 + 4 * 60)), "2d 03:04");
}

TEST(Text, TrimmedHasNoBlanksAtItsEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" a\n", " "), "a\n");
}

TEST(Text, PlainNamesAreOfLettersDigitsAndThreeSigns) {
  EXPECT_TRUE(is_plain_name("Loss_2.box-a"));
  for (const char* name : {"", "a b", "a/b", "\xc3\xa4", "a\n"})
    EXPECT_FALSE(is_plain_name(name)) << name;
}

TEST(Text, FirstLineEndsBeforeItsBreak) {
  EXPECT_EQ(first_line("a b\nc\nd"), "a b");
  EXPECT_EQ(first_line("a b"), "a b");
  EXPECT_EQ(first_line("a\r\nb"), "a\r");
  EXPECT_EQ(first_line("\nb"), "");
  EXPECT_EQ(first_line(""), "");
}

TEST(Text, OfAnExceptionOfLibtorchTheMessageIsLeft) {
  EXPECT_EQ(without_frames("two\nlines\nException raised from f at x.cpp:1"), "two\nlines");
  EXPECT_EQ(without_frames("Exception raised by me"), "Exception raised by me");
}

TEST(Text, AsciiLowerLeavesOtherCharacters) {
  EXPECT_EQ(ascii_lower("AbZ@[_\xc3\x84"), "abz@[_\xc3\x84");
}

TEST(Text, DidYouMeanIsEmptyWithoutACandidate) {
  const std::vector<std::string> names = {"epochs"};
  EXPECT_EQ(did_you_mean("epoch", names), ", did you mean 'epochs'?");
  EXPECT_EQ(did_you_mean("learning_rate", names), "");
}

TEST(Text, RankListJoinsRuns) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({4, 3}), "3, 4");
  EXPECT_EQ(rank_list({8, 0, 7, 3, 5, 6}), "0, 3, 5-8");
  EXPECT_EQ(rank_list({0, 1, 2, 10, 11, 12}), "0-2, 10-12");
}

TEST(Text, FormatBytesPicksTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(int64_t{24} << 20), "24.0 MiB");
  EXPECT_EQ(format_bytes(int64_t{5} << 50), "5120.0 TiB");
}

TEST(Text, DoubleQuotedEscapesControlCharacters) {
  EXPECT_EQ(double_quoted(""), R"("")");
  EXPECT_EQ(double_quoted("cat: 'a' #1"), R"("cat: 'a' #1")");
  EXPECT_EQ(double_quoted(R"(a "b" c\d)"), R"("a \"b\" c\\d")");
  EXPECT_EQ(double_quoted("a\nb\tc\x7f"), R"("a\nb\x09c\x7f")");
  EXPECT_EQ(double_quoted(std::string_view("\0", 1)), R"("\x00")");
}

TEST(Text, DoubleQuotedKeepsUtf8AndReplacesOtherBytes) {
  const std::string kept = "\xc3\xa4 \xe2\x82\xac \xed\x9f\xbf \xf0\x9f\x90\x88 \xf4\x8f\xbf\xbf";
  EXPECT_EQ(double_quoted(kept), '"' + kept + '"');
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(double_quoted("caf\xe9"), "\"caf" + mark + '"');
  EXPECT_EQ(double_quoted("\x80z\xc3"), '"' + mark + 'z' + mark + '"');
  // Of too many bytes, a surrogate, and beyond the last character.
  EXPECT_EQ(double_quoted("\xc0\xaf"), '"' + mark + mark + '"');
  EXPECT_EQ(double_quoted("\xe0\x9f\xbf"), '"' + mark + mark + mark + '"');
  EXPECT_EQ(double_quoted("\xed\xa0\x80"), '"' + mark + mark + mark + '"');
  EXPECT_EQ(double_quoted("\xf4\x90\x80\x80"), '"' + mark + mark + mark + mark + '"');
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(split("a,", ','), (std::vector<std::string>{"a", ""}));
}

TEST(Version, BuildIdBeginsWithTheVersion) {
  EXPECT_TRUE(build_id().starts_with(version() + "/")) << build_id();
  EXPECT_LT(build_id().size(), 28u);  // Hello::build holds it with its terminator
}

TEST(Counted, OneIsNoPlural) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "process", "processes"), "2 processes");
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
}

TEST(WithPlace, APlaceStandsOnce) {
  EXPECT_EQ(with_place("a.png", "cut off"), "a.png: cut off");
  for (const char* named : {"a.png: no such file", "a.png is a folder", "open a.png: denied"}) {
    EXPECT_EQ(with_place("a.png", named), named);
  }
  EXPECT_EQ(with_place("a", "no image"), "a: no image");
  EXPECT_EQ(with_place("a", "b.a: a: x"), "b.a: a: x");
  EXPECT_EQ(with_place("d: image 17", "d: image 170: x"), "d: image 17: d: image 170: x");
}

TEST(WithoutControls, NothingIsLeftThatATerminalObeys) {
  EXPECT_EQ(without_controls("a\x1b[2J\n\x7f\xc2\x9b"), "a?[2J???");
  EXPECT_EQ(without_controls("caf\xc3\xa9 \xc2\xa0 \xc2"), "caf\xc3\xa9 \xc2\xa0 \xc2");
}

}  // namespace
}  // namespace lockstep
