#include "lockstep/ocr/postprocess/ctc_path.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

// Rows with the given likeliest class and its probability; the other classes share the rest.
std::vector<float> frames(std::initializer_list<std::pair<size_t, float>> best, size_t classes) {
  std::vector<float> rows;
  for (const auto& [label, probability] : best) {
    for (size_t i = 0; i < classes; ++i) {
      rows.push_back(i == label ? probability
                                : (1 - probability) / static_cast<float>(classes - 1));
    }
  }
  return rows;
}

TEST(CtcPath, DropsRepeatsAndBlanksAndAveragesTheKeptFrames) {
  // a a - a b b -: "aab"; frames 0, 3 and 4 are kept.
  const auto rows =
      frames({{0, 0.9F}, {0, 0.5F}, {2, 0.99F}, {0, 0.6F}, {1, 0.75F}, {1, 0.95F}, {2, 0.8F}}, 3);
  const CtcPath path = ctc_path(rows, 3, 2);
  EXPECT_EQ(path.classes, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_NEAR(path.confidence, 0.75, 1e-6);
}

TEST(CtcPath, BlankMayBeTheFirstClass) {
  const auto rows = frames({{0, 0.9F}, {2, 0.5F}, {0, 0.9F}}, 3);
  EXPECT_EQ(ctc_path(rows, 3, 0).classes, (std::vector<int32_t>{2}));
}

TEST(CtcPath, OfBlanksAloneHasNoConfidence) {
  const CtcPath path = ctc_path(frames({{2, 0.9F}, {2, 0.9F}}, 3), 3, 2);
  EXPECT_TRUE(path.classes.empty());
  EXPECT_EQ(path.confidence, 0);
  EXPECT_TRUE(ctc_path({}, 3, 2).classes.empty());
}

TEST(CtcPath, OfEqualsTakesTheFirst) {
  const std::vector<float> rows = {0.25F, 0.375F, 0.375F};
  EXPECT_EQ(ctc_path(rows, 3, 2).classes, (std::vector<int32_t>{1}));
}

TEST(CtcPath, RefusesRowsThatDoNotFit) {
  const std::vector<float> rows(7, 0.1F);
  EXPECT_THROW(ctc_path(rows, 3, 2), Error);
  EXPECT_THROW(ctc_path(rows, 0, 2), Error);
}

TEST(CtcText, SpellsWithTheDictionary) {
  const Dictionary words =
      Dictionary::parse("A\nb\n中\n", "d.txt", {.character_dict_path = "d.txt"});
  const auto rows = frames({{0, 0.5F}, {3, 0.9F}, {2, 0.75F}, {2, 0.7F}, {1, 0.25F + 0.01F}}, 4);
  EXPECT_EQ(ctc_text(rows, words).text, "A中b");
  EXPECT_NEAR(ctc_text(rows, words).confidence, (0.5 + 0.75 + 0.26) / 3, 1e-6);
}

TEST(CtcText, LowersWhereTheDictionarySaysSo) {
  CharacterOptions options;
  options.lower = true;
  const Dictionary words = Dictionary::parse("A\nb\n", "dict.txt", options);
  EXPECT_EQ(ctc_text(frames({{0, 0.9F}, {1, 0.9F}}, 3), words).text, "ab");
}

TEST(CtcText, BlankFirst) {
  CharacterOptions options;
  options.blank_at_last = false;
  const Dictionary words = Dictionary::parse("x\ny\n", "dict.txt", options);
  EXPECT_EQ(ctc_text(frames({{0, 0.9F}, {1, 0.9F}, {2, 0.9F}}, 3), words).text, "xy");
}

}  // namespace
}  // namespace lockstep::ocr
