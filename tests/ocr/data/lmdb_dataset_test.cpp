#include "lockstep/ocr/data/lmdb_dataset.h"

#include <set>

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"
#include "tests/ocr/data/write_lmdb.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::word_records;
using testing::write_lmdb;

std::vector<std::string> labels(const LmdbDataset& data) {
  std::vector<std::string> result;
  for (int64_t i = 0; i < data.size(); ++i) result.push_back(data.load(i).label);
  return result;
}

TEST(LmdbDataset, JoinsAllLeafFoldersByName) {
  const TempDir dir;
  write_lmdb(dir / "b", word_records({{"B1", "b one"}}));
  write_lmdb(dir.path() / "a" / "deep", word_records({{"A1", "a one"}, {"A2", "a two"}}));
  const LmdbDataset data({.data_dirs = {dir.path()}});
  EXPECT_EQ(labels(data), (std::vector<std::string>{"a one", "a two", "b one"}));
  const Sample sample = data.load(2);
  EXPECT_EQ(std::string(sample.encoded.begin(), sample.encoded.end()), "B1");
  EXPECT_EQ(sample.source, (dir / "b").string() + "/data.mdb:image-000000001");
  EXPECT_EQ(sample.min_side, 1);
}

TEST(LmdbDataset, NamesAnEnvironmentWhoseFolderEndsWithASlash) {
  const TempDir dir;
  write_lmdb(dir / "w", word_records({{"x", "one"}}));
  const LmdbDataset data({.data_dirs = {dir / "w" / ""}});
  EXPECT_EQ(data.notes(),
            (std::vector<std::string>{"Number of LMDB records:\nw                   1"}));
}

TEST(LmdbDataset, RatioAndShuffle) {
  const TempDir dir;
  std::vector<std::pair<std::string, std::string>> words;
  for (int i = 0; i < 50; ++i) words.emplace_back("x", std::to_string(i));
  write_lmdb(dir / "w", word_records(words));
  EXPECT_EQ(labels(LmdbDataset({.data_dirs = {dir.path()}, .sample_ratio = 0.04})),
            (std::vector<std::string>{"0", "1"}));
  const auto one = labels(LmdbDataset({.data_dirs = {dir.path()}, .shuffle = true, .seed = 1}));
  const auto two = labels(LmdbDataset({.data_dirs = {dir.path()}, .shuffle = true, .seed = 2}));
  EXPECT_NE(one, two);
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), 50U);
}

TEST(LmdbDataset, FiltersByLabel) {
  const TempDir dir;
  write_lmdb(dir / "w", word_records({{"x", "aab"}, {"x", "abcd"}, {"x", "--"}, {"x", "Q"}}));
  const auto kept = [&](const LmdbOptions& options) {
    return labels(LmdbDataset({.data_dirs = {dir.path()}, .options = options}));
  };
  EXPECT_EQ(kept({.filter_max_len = true, .max_text_len = 3}),
            (std::vector<std::string>{"aab", "--", "Q"}));
  EXPECT_EQ(kept({.filter_max_len = true, .extra_count_if_repeat = true, .max_text_len = 3}),
            (std::vector<std::string>{"--", "Q"}));
  EXPECT_EQ(kept({.filter_zero_text_image = true}), (std::vector<std::string>{"aab", "abcd", "Q"}));
  error_of(ErrorCode::kInvalidArgument, [&] { kept({.filter_max_len = true, .max_text_len = 0}); });
}

TEST(LmdbDataset, StandardizesLabelsAndAsksForLargerImages) {
  const TempDir dir;
  write_lmdb(dir / "w", word_records({{"x", "\xEF\xBC\xA1"}}));
  const LmdbDataset data(
      {.data_dirs = {dir.path()}, .options = {.label_standandize = true, .check_rec_image = true}});
  EXPECT_EQ(data.load(0).label, "A");
  EXPECT_EQ(data.load(0).min_side, 7);
}

TEST(LmdbDataset, ABadFolderIsPassedOverAndABadRecordIsItsOwn) {
  const TempDir dir;
  auto records = word_records({{"x", "one"}, {"x", "two"}, {"x", "\xFF"}});
  records.erase("image-000000002");
  write_lmdb(dir / "good", records);
  std::filesystem::create_directories(dir / "empty");
  write_lmdb(dir / "lies", {{"num-samples", "999999999"}});
  write_lmdb(dir / "none", {{"a", "b"}});
  const LmdbDataset data({.data_dirs = {dir.path()}});
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.load(0).label, "one");
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { data.load(1); }).find("image-000000002: missing"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { data.load(2); }).find("not UTF-8"),
            std::string::npos);
}

TEST(LmdbDataset, NothingToReadIsAnError) {
  const TempDir dir;
  error_of(ErrorCode::kInvalidArgument, [&] { LmdbDataset({.data_dirs = {dir.path()}}); });
  error_of(ErrorCode::kNotFound, [&] { LmdbDataset({.data_dirs = {dir / "gone"}}); });
  write_lmdb(dir / "w", word_records({{"x", "one"}}));
  error_of(ErrorCode::kInvalidArgument,
           [&] { LmdbDataset({.data_dirs = {dir.path()}, .sample_ratio = 1.5}); });
}

}  // namespace
}  // namespace lockstep::ocr
