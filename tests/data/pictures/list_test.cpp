#include "lockstep/data/pictures/list.h"

#include <fmt/format.h>

#include <fstream>

#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Names lines_of(const PictureIndex& index) {
  Names names;
  for (int64_t i = 0; i < index.size(); ++i) {
    names.push_back(std::to_string(index.label(i)) + " " + std::string(index.name(i)));
  }
  return names;
}

/// Lists beside the pictures x.png, y.png and "a, b.png".
class PictureList : public ::testing::Test {
 protected:
  PictureList() {
    for (const char* name : {"x.png", "y.png", "a, b.png"}) std::ofstream(dir_ / name) << "x";
  }
  PictureIndex read(const std::string& name, const std::string& text, int64_t num_classes = 10,
                    std::optional<PictureClasses> classes = std::nullopt) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return read_list(dir_ / name, {dir_.path(), num_classes, std::move(classes)});
  }
  /// Without the folder's name.
  std::string fault(const std::string& name, const std::string& text, ErrorCode code,
                    std::optional<PictureClasses> classes = std::nullopt) const {
    const auto error = error_of([&] { read(name, text, 10, classes); });
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    std::string what = error.what();
    for (const std::string folder = dir_.path().string() + "/"; what.find(folder) != what.npos;) {
      what.erase(what.find(folder), folder.size());
    }
    return what;
  }

  TempFolder dir_;
};

TEST_F(PictureList, ReadsCsvInItsOrder) {
  const auto index = read("l.csv", "path,label\r\ny.png,3\r\n\r\nx.png,0\n\"a, b.png\",3\n");
  EXPECT_EQ(lines_of(index), (Names{"3 y.png", "0 x.png", "3 a, b.png"}));
  EXPECT_EQ(index.classes(), PictureClasses{10});
  EXPECT_EQ(index.path(0), dir_ / "y.png");
  EXPECT_TRUE(index.warnings().empty());
}

TEST_F(PictureList, ReadsTsvAndJsonLines) {
  EXPECT_EQ(lines_of(read("l.tsv", "x.png\tcat\na, b.png\tape")), (Names{"1 x.png", "0 a, b.png"}));
  EXPECT_EQ(lines_of(read("l.jsonl",
                          "{\"path\": \"x.png\", \"label\": \"cat\", \"by\": 3}\n"
                          "{\"label\": \"ape\", \"path\": \"y.png\"}\n")),
            (Names{"1 x.png", "0 y.png"}));
  EXPECT_EQ(lines_of(read("l.jsonl", "{\"path\": \"x.png\", \"label\": 7}")), Names{"7 x.png"});
}

TEST_F(PictureList, BlanksAroundAFieldDoNotCount) {
  const auto numbers = read("l.csv", "path, label\nx.png, 3\n y.png ,0 \n \"a, b.png\" , 3\n");
  EXPECT_EQ(lines_of(numbers), (Names{"3 x.png", "0 y.png", "3 a, b.png"}));
  EXPECT_EQ(numbers.classes(), PictureClasses{10});
  EXPECT_EQ(read("l.csv", "x.png, big cat\ny.png,\" cat\"\n").classes().names,
            (Names{" cat", "big cat"}));
  EXPECT_EQ(lines_of(read("l.tsv", "x.png \t 3\n")), Names{"3 x.png"});
}

TEST_F(PictureList, AnUnknownHeadingIsNoPicture) {
  const std::string text = "filepath,label_id\nx.png,3\ny.png,0\n";
  EXPECT_EQ(fault("l.csv", text, ErrorCode::kCorrupt),
            "l.csv:1: the label 'label_id', where all others are numbers: a heading is path,label");
  EXPECT_EQ(fault("l.csv", text, ErrorCode::kCorrupt, PictureClasses::named({"ape", "cat"})),
            "l.csv:1: the label 'label_id', where all others are numbers: a heading is path,label");
  const auto classes = PictureClasses::named({"7", "cat"});
  EXPECT_EQ(lines_of(read("l.csv", "x.png,cat\ny.png,7\n", 10, classes)),
            (Names{"1 x.png", "0 y.png"}));
  EXPECT_EQ(lines_of(read("l.csv", "x.png,cat\ny.png,7\n\"a, b.png\",cat\n")),
            (Names{"1 x.png", "0 y.png", "1 a, b.png"}));
}

TEST_F(PictureList, NamesAreNumberedInTheirOrder) {
  const auto index = read("l.csv", "x.png,b\ny.png,10\n\"a, b.png\",a\n");
  EXPECT_EQ(index.classes().names, (Names{"10", "a", "b"}));
  EXPECT_EQ(lines_of(index), (Names{"2 x.png", "0 y.png", "1 a, b.png"}));
}

TEST_F(PictureList, APictureWithTwoLabelsNamesBothLines) {
  EXPECT_EQ(fault("l.csv", "path,label\nx.png,cat\n\ny.png,ape\nx.png,ape\ny.png,cat\n",
                  ErrorCode::kCorrupt),
            "l.csv:5: x.png has the label 'ape', but 'cat' at l.csv:2; allowed: one for a picture");
  EXPECT_EQ(fault("l.tsv", "y.png\t7\nx.png\t3\nx.png\t3\nx.png\t4\n", ErrorCode::kCorrupt),
            "l.tsv:4: x.png has the label '4', but '3' at l.tsv:2; allowed: one for a picture");
  EXPECT_EQ(
      fault("l.jsonl", "{\"path\": \"x.png\", \"label\": 1}\n{\"path\": \"x.png\", \"label\": 0}",
            ErrorCode::kCorrupt, PictureClasses::named({"cat", "ape"})),
      "l.jsonl:2: x.png has the label 'cat', but 'ape' at l.jsonl:1; allowed: one for a "
      "picture");
}

TEST_F(PictureList, APictureThatIsListedAgainIsOneWarning) {
  const auto index =
      read("l.csv", "path,label\n\ny.png,3\nx.png,2\n\nx.png,02\ny.png,3\nx.png,2\n");
  EXPECT_EQ(lines_of(index), (Names{"3 y.png", "2 x.png", "2 x.png", "3 y.png", "2 x.png"}));
  const std::string file = (dir_ / "l.csv").string();
  EXPECT_EQ(index.warnings(),
            Names{file + ": 3 of 5 lines name a picture again, with the same label; the first: " +
                  file + ":6: x.png, as at line 4"});
}

TEST_F(PictureList, OneFileWithTwoNamesIsOnePicture) {
  EXPECT_EQ(
      fault("l.csv", "x.png,cat\n./x.png,dog\n", ErrorCode::kCorrupt),
      "l.csv:2: ./x.png has the label 'dog', but 'cat' at l.csv:1; allowed: one for a picture");
  EXPECT_EQ(fault("l.csv", "sub/../x.png,cat\n.//x.png,dog\n", ErrorCode::kCorrupt),
            "l.csv:2: .//x.png has the label 'dog', but 'cat' at l.csv:1; allowed: one for a "
            "picture");
  EXPECT_EQ(read("l.csv", "x.png,1\n./y.png,2\n").warnings(), Names{});
}

TEST_F(PictureList, AnotherEncodingIsNamed) {
  using namespace std::string_literals;
  for (const auto& text : {"\xFF\xFEx\0.\0"s, "\xFE\xFF\0x\0."s}) {
    EXPECT_EQ(fault("l.csv", text, ErrorCode::kCorrupt), "l.csv: UTF-16; save it as UTF-8");
  }
}

// Of many names each one is found, though hashes alone are kept of them.
TEST_F(PictureList, OneOfManyPicturesThatIsListedTwiceIsFound) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("{}.png,{}\n", i, i % 10);
  const std::string missing = ": 99 of 100 pictures looked for are missing";
  text.replace(0, 5, "x.png");
  const auto warnings = read("l.csv", text).warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(missing), std::string::npos) << warnings[0];
  EXPECT_EQ(fault("l.csv", text + "12345.png,4\n", ErrorCode::kCorrupt),
            "l.csv:20001: 12345.png has the label '4', but '5' at l.csv:12346; allowed: one for a "
            "picture");
}

TEST_F(PictureList, TakesLittleMemoryForNamesOfOneKind) {
  constexpr int64_t kCount = 20'000;
  std::string text = "x.png,1\n";
  for (int64_t i = 1; i < kCount; ++i) text += fmt::format("n00010000/{:09}.png,{}\n", i, i % 7);
  EXPECT_LE(read("l.csv", text).memory_bytes(), kCount * 12U);
}

// Without the move the names would be in memory: some 44 bytes each here.
TEST_F(PictureList, NamesOfManyPicturesAreInAFile) {
  constexpr int64_t kCount = 20'000;
  std::string text = "x.png,1\n";
  for (int64_t i = 1; i < kCount; ++i) {
    const auto number = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15;
    text += fmt::format("{0:016x}-{0:016x}-{1}.png,{2}\n", number, i, i % 7);
  }
  const auto in_memory = read("l.csv", text);
  const fs::path caches = dir_ / "caches";
  auto index = read_list(dir_ / "l.csv", {dir_.path(), 10, std::nullopt, caches});
  EXPECT_LE(index.memory_bytes(), kCount * 5U);
  EXPECT_GE(in_memory.memory_bytes(), kCount * 38U);
  EXPECT_EQ(index.digest(), in_memory.digest());
  EXPECT_EQ(lines_of(index), lines_of(in_memory));
  EXPECT_TRUE(fs::is_empty(caches)) << "the file has no name";
  index.keep(3);
  EXPECT_EQ(lines_of(index), (Names{"1 x.png", "1 9e3779b97f4a7c15-9e3779b97f4a7c15-1.png",
                                    "2 3c6ef372fe94f82a-3c6ef372fe94f82a-2.png"}));
  std::ofstream(dir_ / "file") << "x";
  const auto elsewhere = read_list(dir_ / "l.csv", {dir_.path(), 10, std::nullopt, dir_ / "file"});
  EXPECT_LE(elsewhere.memory_bytes(), kCount * 5U) << "their file is a temporary one";
  EXPECT_EQ(elsewhere.digest(), in_memory.digest());
}

TEST_F(PictureList, EvaluationHasTheClassesOfTraining) {
  const auto classes = PictureClasses::named({"cat", "ape"});
  EXPECT_EQ(lines_of(read("l.csv", "x.png,ape\n", 10, classes)), Names{"1 x.png"});
  EXPECT_EQ(lines_of(read("l.csv", "x.png,1\ny.png,0", 10, classes)),
            (Names{"1 x.png", "0 y.png"}));
  EXPECT_EQ(fault("l.csv", "x.png,ape\ny.png,apex\n", ErrorCode::kInvalidArgument, classes),
            "l.csv:2: the data set has no class 'apex', did you mean 'ape'?");
  EXPECT_EQ(fault("l.csv", "x.png,1\ny.png,2\n", ErrorCode::kInvalidArgument, classes),
            "l.csv:1: the data set has no class '1'");
}

TEST_F(PictureList, ALabelOutOfRangeNamesItsLine) {
  EXPECT_EQ(fault("l.csv", "x.png,9\ny.png,10\n", ErrorCode::kInvalidArgument),
            "l.csv:2: the data set has no class '10'; allowed: 0 to 9");
  EXPECT_EQ(fault("l.jsonl", "{\"path\": \"x.png\", \"label\": -1}", ErrorCode::kInvalidArgument),
            "l.jsonl:1: the data set has no class '-1'; allowed: 0 to 9");
}

TEST_F(PictureList, BadLinesNameFileAndLine) {
  const auto bad = [&](const std::string& name, const std::string& text) {
    return fault(name, text, ErrorCode::kCorrupt);
  };
  EXPECT_EQ(bad("l.csv", "x.png,1\ny.png\n"), "l.csv:2: 1 fields; allowed: two, PATH,LABEL");
  EXPECT_EQ(bad("l.csv", "a, b.png,1"), "l.csv:1: 3 fields; allowed: two, PATH,LABEL");
  EXPECT_EQ(bad("l.csv", "\"x.png,1"), "l.csv:1: a quote that does not end");
  EXPECT_EQ(bad("l.csv", "\"x\".png,1"), "l.csv:1: text behind a field in quotes");
  EXPECT_EQ(bad("l.csv", "x.png,"), "l.csv:1: an empty path or label");
  EXPECT_EQ(bad("l.tsv", "x.png 1"), "l.tsv:1: 1 fields; allowed: two, PATH<TAB>LABEL");
  EXPECT_EQ(bad("l.jsonl", "[1]"), "l.jsonl:1: no JSON object");
  EXPECT_EQ(bad("l.jsonl", "{\"label\": 1}"), "l.jsonl:1: no text with the key 'path'");
  EXPECT_EQ(bad("l.jsonl", "{\"path\": \"x.png\", \"label\": 1.5}"),
            "l.jsonl:1: no text or whole number with the key 'label'");
  EXPECT_EQ(bad("l.csv", "path,label\n"), "l.csv: no picture");
}

TEST_F(PictureList, QuotesAreDoubledWithinQuotes) {
  const auto line = split_list_line("\"a\"\"b.png\",\"big \"\"cat\"\"\"", ListFormat::kCsv, "l:1");
  EXPECT_EQ(line.picture, "a\"b.png");
  EXPECT_EQ(line.label, "big \"cat\"");
}

TEST_F(PictureList, OtherExtensionsAreRefused) {
  EXPECT_EQ(fault("l.txt", "x.png 1", ErrorCode::kInvalidArgument),
            "l.txt: a list of pictures ends in .csv, .tsv, .jsonl or .ndjson");
  EXPECT_EQ(error_of([&] { read_list(dir_ / "none.csv", {}); }).code(), ErrorCode::kNotFound);
}

TEST_F(PictureList, MissingPicturesAreANoteOrAnError) {
  EXPECT_EQ(read("l.csv", "x.png,1\ngone.png,1\n").warnings(),
            Names{(dir_ / "l.csv").string() +
                  ": 1 of 2 pictures looked for are missing; the "
                  "first: " +
                  (dir_ / "gone.png").string()});
  EXPECT_EQ(fault("l.csv", "g.png,1\ngone.png,1\n", ErrorCode::kCorrupt),
            "l.csv: 2 of 2 pictures looked for are missing; the first: g.png");
}

TEST_F(PictureList, AbsolutePathsStandForThemselves) {
  const auto index = read("l.csv", (dir_ / "x.png").string() + ",1\n");
  EXPECT_EQ(index.path(0), dir_ / "x.png");
}

TEST_F(PictureList, KeepsTheBeginning) {
  auto index = read("l.csv", "x.png,1\ny.png,2\n");
  index.keep(1);
  EXPECT_EQ(lines_of(index), Names{"1 x.png"});
  index.keep(5);
  EXPECT_EQ(index.size(), 1);
}

}  // namespace
}  // namespace lockstep
