#include "lockstep/ocr/metrics/rec_metric.h"

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

TEST(EditDistance, OverTheLongerOne) {
  EXPECT_DOUBLE_EQ(normalised_edit_distance("kitten", "sitting"), 3.0 / 7);
  EXPECT_DOUBLE_EQ(normalised_edit_distance("abc", ""), 1);
  EXPECT_DOUBLE_EQ(normalised_edit_distance("", "ab"), 1);
  EXPECT_EQ(normalised_edit_distance("", ""), 0);
  EXPECT_EQ(normalised_edit_distance("same", "same"), 0);
  EXPECT_DOUBLE_EQ(normalised_edit_distance("ab", "ba"), 1);  // a swap is two changes
}

TEST(EditDistance, CountsCharactersNotBytes) {
  EXPECT_DOUBLE_EQ(normalised_edit_distance("中文字", "中国字"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(normalised_edit_distance("é", "e"), 1);
}

TEST(RecScorer, DefaultsCompareLettersAndDigitsInLowerCase) {
  const RecScorer scorer{{}};
  const RecScore one = scorer.score("Ba la1a", "BA X-la la!");
  EXPECT_EQ(one.predicted, "bala1a");
  EXPECT_EQ(one.truth, "baxlala");
  EXPECT_EQ(one.counts.words, 1);
  EXPECT_EQ(one.counts.correct, 0);
  EXPECT_NEAR(one.counts.distance, 2.0 / 7, 1e-9);
  EXPECT_EQ(scorer.score("hello", "Hel lo!").counts.correct, 1);
}

TEST(RecScorer, UnknownCharactersGoFromTheTruthAlone) {
  EXPECT_EQ(RecScorer({}).score("it's", "it's").counts.correct, 0);
  RecMetricOptions options;
  options.filter_ood = false;
  EXPECT_EQ(RecScorer(options).score("it's", "it's").counts.correct, 1);
}

TEST(RecScorer, KeepsCaseAndSpacesWhenAsked) {
  RecMetricOptions options;
  options.lower = false;
  options.ignore_space = false;
  options.filter_ood = false;
  const RecScorer scorer(options);
  EXPECT_EQ(scorer.score("a b", "a b").counts.correct, 1);
  EXPECT_EQ(scorer.score("a b", "ab").counts.correct, 0);
  EXPECT_EQ(scorer.score("AB", "ab").counts.correct, 0);
}

TEST(RecScorer, IgnoresSymbolsOfBothSides) {
  RecMetricOptions options;
  options.ignore_symbol = true;
  options.filter_ood = false;
  const RecScore one = RecScorer(options).score("A^中，?é一", "a-b龥龦");
  EXPECT_EQ(one.predicted, "a^中一");
  EXPECT_EQ(one.truth, "ab龥");  // U+9FA5 is the last that counts
}

TEST(RecScorer, ReadsADictionary) {
  const testing::TempDir dir;
  testing::write_text(dir / "d.txt", "中\n文\nA\n");
  RecMetricOptions options;
  options.character_dict_path = dir / "d.txt";
  options.lower = false;
  EXPECT_EQ(RecScorer(options).score("中A", "中国A文").truth, "中A文");
  options.character_dict_path = dir / "none.txt";
  EXPECT_NE(error_of(ErrorCode::kNotFound, [&] { RecScorer{options}; }).find("none.txt"),
            std::string::npos);
}

TEST(RecCounts, AddToTheSameBitsInAnyOrder) {
  const RecScorer scorer{{}};
  std::vector<RecCounts> words;
  for (size_t length = 1; length < 40; ++length) {
    words.push_back(scorer.score(std::string(length, 'a'), "b" + std::string(length, 'a')).counts);
  }
  RecCounts forward;
  RecCounts backward;
  for (const RecCounts& one : words) forward += one;
  for (auto one = words.rbegin(); one != words.rend(); ++one) {
    backward += RecCounts::from(one->flat());
  }
  EXPECT_EQ(forward.flat(), backward.flat());
  EXPECT_EQ(forward.words, 39);
}

TEST(RecFigures, OfCounts) {
  const RecFigures figures = rec_figures({.words = 8, .correct = 6, .distance = 1});
  EXPECT_DOUBLE_EQ(figures.acc, 0.75);
  EXPECT_DOUBLE_EQ(figures.norm_edit_distance, 0.875);
  EXPECT_EQ(rec_figures({}).acc, 0);
  EXPECT_EQ(rec_figures({}).norm_edit_distance, 0);
}

}  // namespace
}  // namespace lockstep::ocr
