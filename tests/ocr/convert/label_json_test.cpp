#include "lockstep/ocr/convert/label_json.h"

#include <gtest/gtest.h>

namespace lockstep::ocr {
namespace {

TEST(JsonText, EscapesAsPythonDoes) {
  EXPECT_EQ(json_text("a\"b\\c\n\t\x01/é文\x7f"), "\"a\\\"b\\\\c\\n\\t\\u0001/é文\x7f\"");
}

TEST(JsonReal, IsPythonsRepr) {
  for (const auto& [value, text] :
       std::vector<std::pair<double, std::string>>{{10, "10.0"},
                                                   {0, "0.0"},
                                                   {-3.5, "-3.5"},
                                                   {0.1, "0.1"},
                                                   {1.0 / 3, "0.3333333333333333"},
                                                   {1e-5, "1e-05"},
                                                   {0.0001, "0.0001"},
                                                   {1e16, "1e+16"},
                                                   {123456789012345680.0, "1.2345678901234568e+17"},
                                                   {1e15, "1000000000000000.0"}}) {
    EXPECT_EQ(json_real(value), text);
  }
}

TEST(LabelJson, HasPythonsBlanks) {
  LabelWord word;
  word.text = "MASA";
  word.points = {{310, 104}, {416, 141}, {-1, 216}};
  LabelWord other = word;
  other.language = "Latin";
  other.whole = false;
  other.bezier = {1, 2.5};
  EXPECT_EQ(label_json({word, other}),
            "[{\"transcription\": \"MASA\", \"points\": [[310, 104], [416, 141], [-1, 216]]}, "
            "{\"language\": \"Latin\", \"transcription\": \"MASA\", \"points\": [[310.0, 104.0], "
            "[416.0, 141.0], [-1.0, 216.0]], \"bezier\": [1.0, 2.5]}]");
  EXPECT_EQ(label_json({}), "[]");
  word.points = {{-0.0, 1}, {2, -0.0}};  // -0.4 cut to a whole number, as by Python's int()
  EXPECT_EQ(label_json({word}), "[{\"transcription\": \"MASA\", \"points\": [[0, 1], [2, 0]]}]");
}

TEST(SortClockwise, BeginsAtTheLeftAndEndsBelow) {
  LabelWord word;
  word.points = sort_clockwise({{10, 10}, {0, 10}, {0, 0}, {10, 0}});
  EXPECT_NE(label_json({word}).find("[[0, 0], [10, 0], [10, 10], [0, 10]]"), std::string::npos);
  word.points = sort_clockwise({{5, 10}, {10, 5}, {5, 0}, {0, 5}});  // the leftmost has angle 0
  EXPECT_NE(label_json({word}).find("[[0, 5], [5, 0], [10, 5], [5, 10]]"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::ocr
