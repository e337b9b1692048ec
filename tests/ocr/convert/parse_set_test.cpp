// Label files of each set, and broken ones. The expected labels come from MindOCR's own converters.
#include "lockstep/ocr/convert/parse_set.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace lockstep::ocr {
namespace {

using ParseSet = std::vector<LabelWord> (*)(const std::string&, const std::string&, LabelNotes&);

std::string labels(ParseSet parse, const std::string& text) {
  LabelNotes notes;
  return label_json(parse(text, "gt.txt", notes));
}

std::string label(const std::string& text, const std::string& points) {
  return "{\"transcription\": \"" + text + "\", \"points\": " + points + "}";
}

const std::string kBox = "[[0, 0], [9, 0], [9, 5], [0, 5]]";

TEST(ParseSet, Ic15KeepsCommasOfTheText) {
  EXPECT_EQ(labels(parse_ic15,
                   "\xef\xbb\xbf"
                   "9,0,9,5,0,5,0,0,a, b,c\r\n 0,0 ,9,0,9,5,0,5,\n"),
            "[" + label("a, b,c", kBox) + ", " + label("", kBox) + "]");
}

TEST(ParseSet, QuadsThatCrossAreLeftOutWithANote) {
  LabelNotes notes;
  EXPECT_TRUE(parse_ic15("1,1,1,1,5,5,5,5,x", "gt.txt", notes).empty());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0], "gt.txt:1: skipping invalid polygon [[1, 1], [1, 1], [5, 5], [5, 5]]");
}

TEST(ParseSet, TheOthersWithQuads) {
  EXPECT_EQ(labels(parse_mlt, "0,0,9,0,9,5,0,5,Latin,a,b"),
            "[{\"language\": \"Latin\", " + label("a,b", kBox).substr(1) + "]");
  EXPECT_EQ(labels(parse_rctw17, "0,0,9,0,9,5,0,5,0,\"a,b\"\n0,0,9,0,9,5,0,5,1,\"x\"\n"),
            "[" + label("a,b", kBox) + ", " + label("###", kBox) + "]");
  EXPECT_EQ(labels(parse_mtwi2018, "0,0,9.5,0,9.5,5,0,5,x"),
            "[" + label("x", "[[0.0, 0.0], [9.5, 0.0], [9.5, 5.0], [0.0, 5.0]]") + "]");
  EXPECT_EQ(labels(parse_td500, "0 0 100 50 40 20 0.785398\n1 1 100 50 40 20 0\n"),
            "[" + label("0", "[[112, 38], [141, 67], [127, 81], [98, 52]]") + ", " +
                label("###", "[[100, 50], [140, 50], [140, 70], [100, 70]]") + "]");
}

TEST(ParseSet, PolygonsBecomeClockwise) {
  EXPECT_EQ(
      labels(parse_totaltext,
             "x: [[0 9  9 0]], y: [[0 0 5 5]], ornt: [u'c'], transcriptions: [u'the']\n"
             "x: [[0 0\n 9 9]], y: [[0 5 5 0]], ornt: [u'm'], transcriptions: [u'#']\n"),
      "[" + label("the", kBox) + ", " + label("###", "[[9, 0], [9, 5], [0, 5], [0, 0]]") + "]");
  EXPECT_EQ(labels(parse_ctw1500, "0,0,0,5,9,5,9,0,####a,b\n"),
            "[" + label("a,b", "[[9, 0], [9, 5], [0, 5], [0, 0]]") + "]");
}

TEST(ParseSet, JsonSets) {
  EXPECT_EQ(labels(parse_rects, R"({"chars": [], "lines": [
                {"points": [0, 0, 9, 0, 9, 5, 0, 5], "transcription": "文", "ignore": 0},
                {"points": [0, 0, 9, 0, 9, 5, 0, 5], "transcription": "x", "ignore": 1},
                {"points": [0, 0, 9, 5, 9, 0, 0, 5], "transcription": "y", "ignore": 0}]})"),
            "[" + label("文", kBox) + ", " + label("###", kBox) + "]");
  const auto images = parse_syntext150k(
      R"({"annotations": [{"image_id": 7, "bbox": [0.9, 0.0, 8.6, 5.0], "rec": [33, 66, 95, 96],
                           "bezier_pts": [1.0, 2.5]}]})",
      "gt.json");
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].number, 7);
  EXPECT_EQ(label_json(images[0].words),
            "[{\"transcription\": \"Ab口\", \"points\": " + kBox + ", \"bezier\": [1.0, 2.5]}]");
}

TEST(ParseSet, Ctw1500sTrainingSetIsXml) {
  const auto xml = [](const std::string& corners) {
    return "<Annotations><image file=\"1.jpg\"><box height=\"5\"><label>a &amp; b</label><segs>" +
           corners + "</segs><pts/></box></image></Annotations>";
  };
  const std::string corners = "0,0,1,0,2,0,3,0,4,0,5,0,6,0,6,5,5,5,4,5,3,5,2,5,1,5,0,5";
  EXPECT_EQ(labels(parse_ctw1500_xml, "<?xml version='1.0' ?>\n" + xml(corners)),
            "[" +
                label("a & b",
                      "[[0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 0], [6, 5], [5, 5], "
                      "[4, 5], [3, 5], [2, 5], [1, 5], [0, 5]]") +
                "]");
  const auto fault = [](const std::string& text) {
    return std::string(error_of([&] { labels(parse_ctw1500_xml, text); }).what());
  };
  EXPECT_EQ(fault(xml("1,2")), "gt.txt: 'segs' of 2 numbers, 28 are needed");
  EXPECT_EQ(fault("<a><image><box/></image></a>"), "gt.txt: a box without 'segs'");
  EXPECT_TRUE(fault("<a><image>").starts_with("gt.txt: no XML: "));
}

TEST(ParseSet, ChineseIsReadFromGbk) {
  const std::string box = "0,0,9,0,9,5,0,5,";
  EXPECT_EQ(labels(parse_casia10k, box + "\xce\xc4\xd7\xd6\xff\n"),
            "[" + label("文字", kBox) + "]");
  EXPECT_EQ(
      labels(parse_sroie, "9,0,9,5,0,5,0,0,***\n\n" + box + "\xce\xc4\n"),
      "[" + label("###", "[[9, 0], [9, 5], [0, 5], [0, 0]]") + ", " + label("文", kBox) + "]");
  LabelNotes notes;
  const Error error = error_of([&] { parse_sroie("\n" + box + "\xff\n", "gt.txt", notes); });
  EXPECT_STREQ(error.what(), "gt.txt:2: not GBK");
  EXPECT_TRUE(parse_sroie("0,0,9,5,9,0,0,5,x\n", "gt.txt", notes).empty());
  EXPECT_EQ(notes.size(), 1U);
  EXPECT_EQ(labels(parse_borndigital, "0, 0, 9, 5, \"a, É\" \n"), "[" + label("a, É", kBox) + "]");
}

TEST(ParseSet, OneFileForAllPictures) {
  LabelNotes notes;
  const auto art = parse_art(R"({"gt_1": [
      {"transcription": "a", "points": [[0, 0], [9, 0], [9, 5], [0, 5]], "illegibility": false},
      {"transcription": "b", "points": [[0, 0], [9, 5], [9, 0], [0, 5]], "illegibility": true},
      {"transcription": "c", "points": [[0, 0], [9, 5]], "illegibility": false},
      {"transcription": "d", "points": [[9, 9], [5, 5], [0, 0], [2, 2]], "illegibility": false}]})",
                             "all.json", false, notes);
  EXPECT_EQ(label_json(art.at("gt_1")), "[" + label("a", kBox) + ", " +
                                            label("###", "[[9, 5], [0, 5], [0, 0], [9, 0]]") +
                                            ", " + label("d", "[[9, 9], [0, 0]]") + "]");
  EXPECT_EQ(notes.size(), 3U);

  const auto ctw = parse_ctw(
      R"({"file_name": "1.jpg", "ignore": [{"polygon": [[0.5, 0.0], [9.0, 0.0], [9.0, 5.1]]}], )"
      R"("annotations": [[{"text": "文", "polygon": [[0.0, 0.0], [4.0, 0.0], [4.0, 5.1], [0.0, 5.1]]}, )"
      R"({"text": "字", "polygon": [[5.0, 0.0], [9.0, 0.0], [9.0, 5.1], [5.0, 5.1]]}]]})",
      "all.jsonl", notes);
  ASSERT_EQ(ctw.size(), 1U);
  EXPECT_EQ(
      label_json(ctw[0].words),
      "[" +
          label("文字",
                "[[9.0, 5.099999904632568], [0.0, 5.099999904632568], [0.0, 0.0], [9.0, 0.0]]") +
          ", " + label("###", "[[0.5, 0.0], [9.0, 0.0], [9.0, 5.1]]") + "]");
}

TEST(ParseSet, TablesOfCoco) {
  const std::string tables = R"({"imgs": {"9": {"id": 9, "set": "val", "file_name": "t/9.jpg"},
      "10": {"id": 10, "set": "val", "file_name": "t/10.jpg"},
      "7": {"id": 7, "set": "train", "file_name": "t/7.jpg"}},
      "imgToAnns": {"7": [], "9": [1, 2, 3], "10": [2]}, "anns": {
      "1": {"polygon": [9, 0, 9.9, 5, 0, 5, 0, 0], "points": [9, 0, 9.9, 5, 0, 5, 0, 0],
            "class": "c", "language": "l", "legibility": "legible", "utf8_string": "a"},
      "2": {"polygon": [0, 0, 9, 5, 9, 0, 0, 5], "points": [0, 0, 9, 5, 9, 0, 0, 5],
            "class": "c", "language": "l", "legibility": "illegible", "utf8_string": "."},
      "3": {"polygon": [1, 1, 1, 1, 1, 1, 5, 5], "points": [0, 0, 9, 5, 9, 0, 0, 5, 4, 4],
            "bbox": [0.5, 1, 2, 3], "class": "c", "language": "l", "legibility": "legible",
            "utf8_string": "z"}}})";
  LabelNotes notes;
  const auto coco = parse_cocotext(tables, "coco.json", "val", notes);
  ASSERT_EQ(coco.size(), 1U);  // the other one has no legible text
  EXPECT_EQ(coco[0].name, "t/9.jpg");
  const std::string before = R"({"type": "c", "language": "l", )";
  EXPECT_EQ(label_json(coco[0].words), "[" + before + label("a", kBox).substr(1) + ", " + before +
                                           label("###", kBox).substr(1) + "]");
  EXPECT_EQ(notes.size(), 1U);

  const auto all = parse_textocr(tables, "textocr.json", notes);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].name, "10.jpg");  // in the order of the file
  EXPECT_EQ(label_json(all[0].words),
            "[" + label("a", "[[9, 0], [9, 5], [0, 5], [0, 0]]") + ", " + label("###", kBox) +
                ", " + label("z", "[[0.5, 1.0], [2.5, 1.0], [2.5, 4.0], [0.5, 4.0]]") + "]");
}

TEST(ParseSet, WordsWithoutQuotes) {
  const auto words =
      parse_ic15_words("\xef\xbb\xbfword_1.png, \"a, \"b\"\"\r\nword_2.png, x\n", "gt");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0], (std::pair<std::string, std::string>{"word_1.png", "a, b"}));
}

TEST(ParseSet, BadLinesAreNamed) {
  const auto fault = [](ParseSet parse, const std::string& text) {
    const Error error = error_of([&] { labels(parse, text); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return std::string(error.what());
  };
  EXPECT_EQ(fault(parse_ic15, "0,0,9,0,9,5,0,5,ok\n1,2,3\n"),
            "gt.txt:2: 3 fields between commas, 9 are needed");
  EXPECT_EQ(fault(parse_ic15, "0,0,9,0,9,5,0,5x,a"), "gt.txt:1: '5x' is no whole number");
  EXPECT_EQ(fault(parse_ic15, "0,0,9,0,9,5,0,99999999999999999999,a"),
            "gt.txt:1: '99999999999999999999' is no whole number");
  EXPECT_EQ(fault(parse_ic15, "-9223372036854775808,0,9,0,9,5,0,5,a"),
            "gt.txt:1: '-9223372036854775808' is no whole number");
  EXPECT_EQ(fault(parse_mtwi2018, "0,0,9,0,9,nan,0,5,a"), "gt.txt:1: 'nan' is no number");
  EXPECT_EQ(fault(parse_ic15, "0,0,9,0,9,5,0,5,\xff"), "gt.txt:1: not UTF-8");
  EXPECT_EQ(fault(parse_td500, "0 0 1 2"), "gt.txt:1: 4 fields between blanks, 7 are needed");
  EXPECT_EQ(fault(parse_ctw1500, "1,2,3,####x"),
            "gt.txt:1: 3 coordinates; three points or more are needed");
  EXPECT_EQ(fault(parse_totaltext, "x: [[1]], y: [[1]]\n"),
            "gt.txt:1: fewer than the four fields x, y, ornt, transcriptions");
  EXPECT_EQ(fault(parse_borndigital, "1, 2, 3"), "gt.txt:1: 3 fields between commas, 5 are needed");
  LabelNotes notes;
  const auto fault_of_file = [&notes](const std::string& text) {
    return std::string(error_of([&] { parse_cocotext(text, "all", "val", notes); }).what());
  };
  EXPECT_EQ(fault_of_file("[]"), "all: no JSON object");
  EXPECT_EQ(fault_of_file(R"({"imgs": {"1": {"id": 1}}, "anns": {}, "imgToAnns": {}})"),
            "all: an entry without '1'");
  EXPECT_EQ(std::string(error_of([&] { parse_ctw("{}\n[\n", "all", notes); }).what()),
            "all:1: an entry without 'file_name'");
  EXPECT_EQ(fault(parse_rects, "{"), "gt.txt: no JSON object");
  EXPECT_EQ(fault(parse_rects, "{\"lines\": [3]}"), "gt.txt: an entry without 'points'");
}

}  // namespace
}  // namespace lockstep::ocr
