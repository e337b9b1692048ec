#include "lockstep/ocr/data/lmdb_file.h"

#include <fmt/format.h>

#include <random>

#include "lockstep/base/file.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"
#include "tests/ocr/data/write_lmdb.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::write_lmdb;

/// Keys and values of many sizes: several levels of pages, values on separate pages, empty values.
std::map<std::string, std::string> many_values() {
  std::mt19937 random(1);
  std::map<std::string, std::string> values;
  for (int i = 0; i < 3000; ++i) {
    const size_t size = i % 100 == 0 ? random() % 20000 : random() % 300;
    values[fmt::format("key-{}", random())] = std::string(size, static_cast<char>(random()));
  }
  values["empty"] = "";
  return values;
}

TEST(LmdbFile, ReadsWhatLiblmdbWrote) {
  const TempDir dir;
  const auto values = many_values();
  write_lmdb(dir.path(), values);
  const LmdbFile file(dir.path());
  EXPECT_EQ(file.num_entries(), static_cast<int64_t>(values.size()));
  for (const auto& [key, value] : values) {
    ASSERT_EQ(file.get(key), value) << key;
    ASSERT_EQ(file.get(key + "x").has_value(), values.contains(key + "x"));
  }
  EXPECT_EQ(file.get(""), std::nullopt);
  EXPECT_EQ(file.get("zzz"), std::nullopt);
}

TEST(LmdbFile, ReadsTheLastCommit) {
  const TempDir dir;
  write_lmdb(dir.path(), {{"a", "1"}, {"b", "2"}});
  write_lmdb(dir.path(), {{"a", "3"}});
  write_lmdb(dir.path(), {{"c", std::string(10000, 'c')}});
  const LmdbFile file(dir / "data.mdb");
  EXPECT_EQ(file.get("a"), "3");
  EXPECT_EQ(file.get("b"), "2");
  EXPECT_EQ(file.get("c"), std::string(10000, 'c'));
}

TEST(LmdbFile, AnEmptyEnvironmentHasNothing) {
  const TempDir dir;
  write_lmdb(dir.path(), {});
  EXPECT_EQ(LmdbFile(dir.path()).get("a"), std::nullopt);
}

TEST(LmdbFile, TellsOtherFilesAndCutOffOnes) {
  const TempDir dir;
  error_of(ErrorCode::kNotFound, [&] { LmdbFile(dir.path()); });
  testing::write_text(dir / "data.mdb", "short");
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { LmdbFile(dir.path()); }).find("too short"),
            std::string::npos);
  testing::write_text(dir / "data.mdb", std::string(10000, 'x'));
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { LmdbFile(dir.path()); }).find("no LMDB file"),
            std::string::npos);
  std::filesystem::remove(dir / "data.mdb");
  write_lmdb(dir.path(), many_values());
  std::filesystem::resize_file(dir / "data.mdb", 100'000);
  EXPECT_NE(error_of(ErrorCode::kCorrupt, [&] { LmdbFile(dir.path()); }).find("cut off"),
            std::string::npos);
}

/// Random changes of bytes: the result is a value or an error, and values stay within the file.
TEST(LmdbFile, DamagedPagesGiveErrors) {
  const TempDir dir;
  const auto values = many_values();
  write_lmdb(dir.path(), values);
  const std::string good = read_file(dir / "data.mdb");
  std::mt19937 random(2);
  int errors = 0;
  for (int round = 0; round < 100; ++round) {
    std::string bad = good;
    for (int i = 0; i < 2000; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    testing::write_text(dir / "bad.mdb", bad);
    try {
      const LmdbFile file(dir / "bad.mdb");
      for (const auto& [key, value] : values) {
        const auto got = file.get(key);
        EXPECT_LE(got.value_or("").size(), bad.size());
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
      ++errors;
    }
  }
  EXPECT_GT(errors, 50);
}

}  // namespace
}  // namespace lockstep::ocr
