#include "lockstep/data/pictures/index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kIndexed = 100'000, kInClass = 1'000;

int64_t label_at(int64_t i) {
  return i / kInClass;
}

/// As ImageNet's, "n01440764/n01440764_10026.JPEG", sorted.
std::string sorted_name(int64_t i) {
  const std::string name = fmt::format("n{:08}", 1'440'764 + 37 * label_at(i));
  return fmt::format("{0}/{0}_{1}.JPEG", name, 10'026 + i % kInClass * 29);
}

/// With little in common but their length.
std::string random_name(int64_t i) {
  const auto number = static_cast<uint64_t>(i + 1);
  return fmt::format("{:016x}{:016x}", number * 0x9E3779B97F4A7C15, number * 0xBF58476D1CE4E5B9);
}

PictureIndex index_of_names(int64_t count, std::string (*name)(int64_t)) {
  PictureIndex index("data", {kIndexed / kInClass});
  for (int64_t i = 0; i < count; ++i) index.add(name(i), label_at(i));
  index.shrink();
  return index;
}

void expect_pictures(const PictureIndex& index, int64_t count, std::string (*name)(int64_t)) {
  ASSERT_EQ(index.size(), count);
  for (int64_t i = count; i-- > 0;) {
    ASSERT_EQ(index.name(i), name(i));
    ASSERT_EQ(index.label(i), label_at(i));
  }
  index.for_each_name([&](int64_t i, std::string_view found) { ASSERT_EQ(found, name(i)); });
}

/// Has temporary files in `folder` as long as it lives.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& folder) : before_(fs::temp_directory_path()) {
    ::setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporaryFolder() { ::setenv("TMPDIR", before_.c_str(), 1); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

 private:
  fs::path before_;
};

TEST(PictureIndex, TakesAtMost24BytesAPictureInMemory) {
  auto index = index_of_names(kIndexed, sorted_name);
  EXPECT_LE(index.memory_bytes(), size_t{24} * kIndexed);
  EXPECT_LE(index.memory_bytes(), size_t{13} * kIndexed) << "as documents have it";
  expect_pictures(index, kIndexed, sorted_name);
  index.keep(1'234);
  EXPECT_LE(index.memory_bytes(), 24U * 1'234);
  expect_pictures(index, 1'234, sorted_name);
}

TEST(PictureIndex, LeavesNamesOfFewBytesInMemory) {
  const TempFolder dir;
  auto index = index_of_names(kIndexed, sorted_name);
  index.limit_memory(dir / "cache");
  EXPECT_FALSE(fs::exists(dir / "cache"));
}

TEST(PictureIndex, MovesNamesOfManyBytesIntoAFile) {
  const TempFolder dir;
  const auto in_memory = index_of_names(kIndexed, random_name);
  EXPECT_GT(in_memory.memory_bytes(), size_t{24} * kIndexed);
  auto index = in_memory;
  index.limit_memory(dir / "cache");
  EXPECT_LE(index.memory_bytes(), size_t{5} * kIndexed);
  EXPECT_TRUE(fs::is_empty(dir / "cache")) << "the file has no name";
  EXPECT_EQ(index.digest(), in_memory.digest());
  expect_pictures(index, kIndexed, random_name);
  index.keep(77);
  expect_pictures(index, 77, random_name);
}

TEST(PictureIndex, HasTheFileWhereItCanBe) {
  const TempFolder dir;
  std::ofstream(dir / "file") << "x";
  const auto in_memory = index_of_names(kIndexed, random_name);
  auto index = in_memory;
  {
    const TemporaryFolder temporary(dir / "file");
    index.limit_memory(dir / "file");
    EXPECT_EQ(index.memory_bytes(), in_memory.memory_bytes()) << "nowhere";
  }
  const TemporaryFolder temporary(dir.path());
  index.limit_memory(dir / "file");
  EXPECT_LE(index.memory_bytes(), size_t{5} * kIndexed);
  EXPECT_EQ(index.digest(), in_memory.digest());
}

TEST(PictureIndex, OfFewPicturesNeedsNoFile) {
  const TempFolder dir;
  auto index = index_of_names(kManyNames - 1, random_name);
  index.limit_memory(dir / "cache");
  EXPECT_FALSE(fs::exists(dir / "cache"));
}

}  // namespace
}  // namespace lockstep
