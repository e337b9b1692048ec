#include "lockstep/data/pictures/packed_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "lockstep/base/unique_fd.h"
#include "lockstep/data/usable_samples.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

PackedNames packed(const Names& names) {
  PackedNames made;
  for (const auto& name : names) made.add(name);
  made.shrink();
  return made;
}

/// By for_each().
Names in_turn(const PackedNames& names) {
  Names all;
  names.for_each([&](int64_t i, std::string_view name) {
    EXPECT_EQ(i, std::ssize(all));
    all.emplace_back(name);
  });
  return all;
}

/// By at(), from the last to the first.
Names backwards(const PackedNames& names) {
  Names all(static_cast<size_t>(names.size()));
  for (int64_t i = names.size(); i-- > 0;) all[static_cast<size_t>(i)] = names.at(i);
  return all;
}

void expect_names(const PackedNames& names, const Names& expected) {
  EXPECT_EQ(names.size(), std::ssize(expected));
  EXPECT_EQ(in_turn(names), expected);
  EXPECT_EQ(backwards(names), expected);
}

/// Names of any kind beside each other, of `count` altogether.
Names mixed(size_t count) {
  using namespace std::string_literals;
  const Names kinds = {"",
                       "a",
                       "aa",
                       "aaa",
                       "aa",
                       "",
                       "",
                       "aaaaaaaa",
                       "baaaab",
                       "\xC3\xA4/\xE7\x8C\xAB-1.jpg",
                       "\xC3\xB6/\xE7\x8C\xAB-2.jpg",
                       "\xFF\xFE no UTF-8",
                       "a\0b"s,
                       std::string(127, 'x'),
                       std::string(128, 'x'),
                       std::string(70'000, 'x') + ".jpg",
                       std::string(70'000, 'x') + "y.jpg",
                       "n01440764/n01440764_10026.JPEG",
                       "n01440764/n01440764_10027.JPEG"};
  Names names;
  for (size_t i = 0; i < count; ++i) names.push_back(kinds[i % kinds.size()]);
  return names;
}

TEST(PackedNames, AreFoundInAnyOrder) {
  for (const size_t count : {0U, 1U, 15U, 16U, 17U, 100U}) {
    SCOPED_TRACE(count);
    expect_names(packed(mixed(count)), mixed(count));
  }
}

TEST(PackedNames, OfRandomBytesAreFound) {
  std::mt19937 random(7);
  Names names;
  for (int i = 0; i < 5'000; ++i) {
    std::string name(random() % 12, '\0');
    for (char& byte : name) byte = static_cast<char>('a' + random() % 2);
    names.push_back(std::move(name));
  }
  expect_names(packed(names), names);
}

TEST(PackedNames, MayBeReadBeforeTheyAreShrunk) {
  PackedNames names;
  names.add("a.png");
  EXPECT_EQ(names.at(0), "a.png");
  names.add("b.png");
  expect_names(names, {"a.png", "b.png"});
}

TEST(PackedNames, AreKeptUpToANumber) {
  const TempFolder dir;
  for (const bool in_file : {false, true}) {
    for (const size_t size : {0U, 1U, 15U, 16U, 17U, 32U, 40U, 41U}) {
      SCOPED_TRACE(size);
      auto names = packed(mixed(40));
      if (in_file) {
        ASSERT_TRUE(names.move_to(dir.path()));
      }
      names.keep(static_cast<int64_t>(size));
      names.shrink();
      expect_names(names, mixed(std::min<size_t>(size, 40)));
    }
  }
}

TEST(PackedNames, TakeWhatTheirNeighboursLack) {
  constexpr size_t kCount = 16'000;
  Names sorted, random;
  std::mt19937_64 numbers(7);
  for (size_t i = 0; i < kCount; ++i) {
    sorted.push_back(fmt::format("n01440764/n01440764_{:05}.JPEG", 10'000 + 3 * i));
    random.push_back(fmt::format("{:016x}{:016x}", numbers(), numbers()));
  }
  EXPECT_LE(packed(sorted).memory_bytes(), kCount * 8);
  EXPECT_LE(packed(random).memory_bytes(), kCount * (32 + 4));
}

TEST(PackedNames, AreInMemoryOrInAFile) {
  const TempFolder dir;
  auto names = packed(mixed(1'000));
  std::ofstream(dir / "file") << "x";
  EXPECT_FALSE(names.move_to(dir / "file")) << "it is no folder";
  expect_names(names, mixed(1'000));
  EXPECT_TRUE(names.move_to(dir.path()));
  EXPECT_LE(names.memory_bytes(), 63U * 8 + 15) << "blocks, and an empty text has room for 15";
  expect_names(names, mixed(1'000));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1) << "their file has no name";
  EXPECT_FALSE(PackedNames().move_to(dir.path())) << "there is none";
}

/// A descriptor of this process for the file without a name in `folder`.
fs::path unnamed_file(const fs::path& folder) {
  for (const auto& one : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const auto target = fs::read_symlink(one.path(), closed).string();
    if (target.starts_with(fs::canonical(folder).string()) && target.ends_with("(deleted)"))
      return one.path();
  }
  return {};
}

TEST(PackedNames, OfADamagedFileAreAnError) {
  const TempFolder dir;
  auto names = packed(mixed(100));
  ASSERT_TRUE(names.move_to(dir.path()));
  const fs::path file = unnamed_file(dir.path());
  ASSERT_FALSE(file.empty());
  const std::string damage(100, '\xFF');
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(fd.get(), damage.data(), damage.size(), 0), std::ssize(damage));
  EXPECT_THROW(names.at(3), DataChanged);
  EXPECT_THROW(in_turn(names), DataChanged);
  EXPECT_EQ(names.at(99), mixed(100)[99]) << "of another block";
  fs::resize_file(file, 100);
  EXPECT_THROW(names.at(99), DataChanged);
}

}  // namespace
}  // namespace lockstep
