#include "lockstep/data/pictures/shards.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "lockstep/data/pictures/reader.h"
#include "lockstep/data/pictures/shard_samples.h"
#include "lockstep/data/pictures/tar.h"
#include "tests/data/pictures/drawn.h"
#include "tests/data/pictures/tar_file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;
using namespace std::string_literals;

TEST(ExpandBraces, CountsListsAndCombines) {
  EXPECT_EQ(expand_braces("a.tar"), Texts{"a.tar"});
  EXPECT_EQ(expand_braces("t-{008..011}.tar"),
            (Texts{"t-008.tar", "t-009.tar", "t-010.tar", "t-011.tar"}));
  EXPECT_EQ(expand_braces("{8..11}"), (Texts{"8", "9", "10", "11"}));
  EXPECT_EQ(expand_braces("{a,bc,}/{0..1}.tar"),
            (Texts{"a/0.tar", "a/1.tar", "bc/0.tar", "bc/1.tar", "/0.tar", "/1.tar"}));
}

TEST(ExpandBraces, FaultsAreOneLine) {
  const auto fault = [](const std::string& pattern) -> std::string {
    const auto error = error_of([&] { expand_braces(pattern); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  };
  EXPECT_EQ(fault("a{0..3"), "shards 'a{0..3': a brace without its partner");
  EXPECT_EQ(fault("a}0{"), "shards 'a}0{': a brace without its partner");
  EXPECT_EQ(fault("{3..1}"), "shards '{3..1}': the range {3..1} falls");
  EXPECT_EQ(fault("{a..c}"), "shards '{a..c}': {a..c} is no range of numbers, as {000..127} is");
  EXPECT_EQ(fault("{{1..2},3}"), "shards '{{1..2},3}': braces within braces");
  EXPECT_NE(fault("{0..1000000}").find("more than a million names"), std::string::npos);
  EXPECT_NE(fault("{0..1000}{0..1000}").find("more than a million names"), std::string::npos);
}

TEST(SplitMemberName, EndsAtTheFirstDotBehindTheFolders) {
  const auto parts = [](const std::string& name) {
    const auto split = split_member_name(name);
    return std::pair(split.sample, split.extension);
  };
  EXPECT_EQ(parts("a.JPG"), std::pair("a"s, "jpg"s));
  EXPECT_EQ(parts("x.y/b.seg.png"), std::pair("x.y/b"s, "seg.png"s));
  EXPECT_EQ(parts("x.y/README"), std::pair(""s, ""s));
  EXPECT_EQ(parts("x/.hidden"), std::pair(""s, ""s));
}

/// A drawn picture as the bytes of a PNG file.
std::string png_of(int seed) {
  cv::Mat bgr;
  cv::cvtColor(drawn_picture(9, 7, seed), bgr, cv::COLOR_RGB2BGR);
  std::vector<uint8_t> bytes;
  EXPECT_TRUE(cv::imencode(".png", bgr, bytes));
  return {bytes.begin(), bytes.end()};
}

cv::Mat picture_at(const PictureIndex& index, int64_t i) {
  const std::string bytes = read_bytes(index.path(i), index.part(i));
  const std::vector<uint8_t> encoded(bytes.begin(), bytes.end());
  cv::Mat picture = cv::imdecode(encoded, cv::IMREAD_COLOR);
  cv::cvtColor(picture, picture, cv::COLOR_BGR2RGB);
  return picture;
}

class Shards : public ::testing::Test {
 protected:
  /// Sample i of the shard is "n/00i", its label i modulo 10.
  void write_shard(const std::string& name, int first, int count) const {
    std::vector<TarEntry> entries = {{"n/", "", AE_IFDIR}, {"README", "text"}};
    for (int i = first; i < first + count; ++i) {
      entries.push_back({fmt::format("n/{:03}.png", i), png_of(i)});
      entries.push_back({fmt::format("n/{:03}.json", i), "{}"});
      entries.push_back({fmt::format("n/{:03}.cls", i), fmt::format("{}\n", i % 10)});
    }
    write_tar(dir_ / name, entries);
  }
  std::string pattern(const std::string& name) const { return (dir_ / name).string(); }
  std::string fault(const std::vector<TarEntry>& entries, ErrorCode code = ErrorCode::kCorrupt) {
    write_tar(dir_ / "f.tar", entries);
    const auto error = error_of([&] { index_shards(pattern("f.tar"), {10}); });
    EXPECT_EQ(error.code(), code);
    return std::string(error.what()).substr(pattern("").size());
  }

  TempFolder dir_;
};

TEST_F(Shards, SamplesComeInTheOrderOfShardsAndMembers) {
  write_shard("s-0.tar", 0, 5);
  write_tar(dir_ / "s-1.tar", {{"README", "no sample"}});
  write_shard("s-2.tar", 40, 3);
  const auto index = index_shards(pattern("s-{0..2}.tar"), {10});
  ASSERT_EQ(index.size(), 8);
  for (int i = 0; i < 8; ++i) {
    const int number = i < 5 ? i : 35 + i;
    const auto part = index.part(i);
    ASSERT_TRUE(part);
    EXPECT_EQ(index.label(i), number % 10);
    EXPECT_EQ(index.path(i), pattern(i < 5 ? "s-0.tar" : "s-2.tar"));
    EXPECT_EQ(index.where(i), fmt::format("{}: n/{:03}.png", index.path(i).string(), number));
    EXPECT_EQ(bytes_of(picture_at(index, i)), bytes_of(drawn_picture(9, 7, number)));
  }
  EXPECT_LE(index.memory_bytes(), 8U * 16 + 15);  // an empty text has room for 15
}

TEST_F(Shards, OfAnIndexBeginAtTheirFirstSamples) {
  write_tar(dir_ / "s-0.tar", {{"README", "no sample"}});
  write_shard("s-1.tar", 0, 5);
  write_tar(dir_ / "s-2.tar", {{"README", "no sample"}});
  write_shard("s-3.tar", 40, 3);
  auto index = index_shards(pattern("s-{0..3}.tar"), {10});
  using Firsts = std::vector<int64_t>;
  EXPECT_EQ(index.shard_firsts(), (Firsts{0, 5}));
  index.keep(6);
  EXPECT_EQ(index.shard_firsts(), (Firsts{0, 5}));
  index.keep(5);
  EXPECT_EQ(index.shard_firsts(), Firsts{0});
}

TEST_F(Shards, ADigestIsOfTheSamplesNotOfTheFolder) {
  write_shard("s.tar", 0, 3);
  fs::create_directory(dir_ / "copy");
  fs::copy(dir_ / "s.tar", dir_ / "copy/s.tar");
  const auto digest = [&](const std::string& name) {
    return index_shards(pattern(name), {10}).digest();
  };
  EXPECT_EQ(digest("s.tar"), digest("copy/s.tar"));
  write_shard("copy/s.tar", 1, 3);
  EXPECT_NE(digest("s.tar"), digest("copy/s.tar"));
}

TEST_F(Shards, MembersOfASampleMayStandApart) {
  write_tar(dir_ / "s.tar",
            {{"a.cls", "1"}, {"b.png", png_of(2)}, {"a.png", png_of(1)}, {"b.cls", "2"}});
  const auto index = index_shards(pattern("s.tar"), {10});
  ASSERT_EQ(index.size(), 2);
  EXPECT_EQ(index.label(0), 1);
  EXPECT_EQ(bytes_of(picture_at(index, 0)), bytes_of(drawn_picture(9, 7, 1)));
}

TEST_F(Shards, FaultsNameShardAndMember) {
  const TarEntry picture = {"a.png", "p"}, label = {"a.cls", "1"};
  EXPECT_EQ(fault({picture, label, {"a.cls", "1"}}), "f.tar: two members of the name a.cls");
  EXPECT_EQ(fault({picture, label, {"a.png", "q"}}),
            "f.tar: sample 'a' has two pictures; the second: a.png");
  EXPECT_EQ(fault({picture, label, {"a.jpg", "q"}}),
            "f.tar: sample 'a' has two pictures; the second: a.jpg");
  EXPECT_EQ(fault({picture}), "f.tar: sample 'a' has no class (.cls)");
  EXPECT_EQ(fault({label}), "f.tar: sample 'a' has no picture (.jpg, .jpeg, .png, .bmp, .webp)");
  for (const char* text : {"10", "-1", "cat", "1.5", "", "99999999999999999999"}) {
    EXPECT_EQ(fault({picture, {"a.cls", text}}, ErrorCode::kInvalidArgument),
              fmt::format("f.tar: a.cls holds '{}', which is no class; allowed: 0 to 9", text));
  }
  EXPECT_EQ(fault({picture, {"a.cls", std::string("\5\0\n7", 4)}}, ErrorCode::kInvalidArgument),
            "f.tar: a.cls holds '???7', which is no class; allowed: 0 to 9");
  write_shard("s.tar", 0, 3);
  fs::resize_file(dir_ / "s.tar", fs::file_size(dir_ / "s.tar") / 2);
  EXPECT_NE(std::string(error_of([&] { index_shards(pattern("s.tar"), {10}); }).what())
                .find("it is cut off"),
            std::string::npos);
}

TEST_F(Shards, AShardThatIsMissingIsNotFound) {
  write_shard("e.tar", 0, 3);
  EXPECT_EQ(error_of([&] { index_shards(pattern("{e,g}.tar"), {10}); }).code(),
            ErrorCode::kNotFound);
}

TEST_F(Shards, AShardWithoutASampleIsNamed) {
  const auto empty = (dir_ / "e.tar").string();
  write_tar(empty, {{"README", "no sample"}});
  const auto error = error_of([&] { index_shards(pattern("e.tar"), {10}); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << "it is there";
  EXPECT_EQ(std::string(error.what()), "shards '" + empty +
                                           "' hold no sample: NAME.jpg (.png, ...) with NAME.cls; "
                                           "the first: " +
                                           empty);
  write_shard("s.tar", 0, 3);
  const auto index = index_shards(pattern("{s,e}.tar"), {10});
  EXPECT_EQ(index.size(), 3);
  EXPECT_EQ(index.warnings(),
            std::vector<std::string>{"shards '" + pattern("{s,e}.tar") +
                                     "': 1 of 2 hold no sample; the first: " + empty});
}

TEST_F(Shards, WhatIsKnownIsNotReadAgain) {
  // Samples so small that 10,000 of them are soon written: a shard names no picture's contents.
  std::vector<TarEntry> entries;
  for (int i = 0; i < 10'000; ++i) {
    entries.push_back({fmt::format("{}.png", i), "p"});
    entries.push_back({fmt::format("{}.cls", i), std::to_string(i % 10)});
  }
  write_tar(dir_ / "s-0.tar", entries);
  write_shard("s-1.tar", 3, 2);
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"s-0.tar", "s-1.tar"}) fs::last_write_time(dir_ / name, past);
  const fs::path known = dir_ / "cache/known";
  const auto index = [&](int64_t classes = 10) {
    return index_shards(pattern("s-{0..1}.tar"), {classes}, known);
  };
  const auto first = index();
  ASSERT_TRUE(fs::exists(known));
  // Other contents of the same size and time would be read as headers, if they were read.
  const auto bytes = read_file(dir_ / "s-0.tar");
  write_file_atomically(dir_ / "s-0.tar", std::string_view(std::string(bytes.size(), 'x')));
  fs::last_write_time(dir_ / "s-0.tar", past);
  const auto second = index();
  EXPECT_EQ(second.digest(), first.digest());
  EXPECT_EQ(second.where(10'001), first.where(10'001));
  EXPECT_EQ(error_of([&] { index(5); }).code(), ErrorCode::kCorrupt) << "a label is out of range";
  fs::last_write_time(dir_ / "s-0.tar", past + std::chrono::seconds(1));
  EXPECT_EQ(error_of([&] { index(); }).code(), ErrorCode::kCorrupt) << "it has changed";
}

TEST(KnownShards, AreWhatWasSavedAndADamagedFileIsEmpty) {
  const TempFolder dir;
  KnownShards known;
  const ShardState state{1000, 77};
  known.add("a.tar", state, {{512, 30, 3}, {600, 400, 9}});
  known.add("b.tar", {5, 6}, {});
  known.save(dir / "known");
  const auto loaded = KnownShards::load(dir / "known");
  const auto* samples = loaded.find("a.tar", state, 10);
  ASSERT_NE(samples, nullptr);
  ASSERT_EQ(samples->size(), 2U);
  EXPECT_EQ((*samples)[1].begin, 600U);
  EXPECT_EQ((*samples)[1].bytes, 400U);
  EXPECT_EQ((*samples)[1].label, 9);
  EXPECT_NE(loaded.find("b.tar", {5, 6}, 1), nullptr);
  EXPECT_EQ(loaded.find("a.tar", state, 9), nullptr);
  EXPECT_EQ(loaded.find("a.tar", {1000, 78}, 10), nullptr);
  EXPECT_EQ(loaded.find("c.tar", state, 10), nullptr);
  EXPECT_EQ(KnownShards::load(dir / "none").find("a.tar", state, 10), nullptr);
  const std::string bytes = read_file(dir / "known");
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_file_atomically(dir / "cut", std::string_view(bytes).substr(0, size));
    EXPECT_EQ(KnownShards::load(dir / "cut").find("a.tar", state, 10), nullptr) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    write_file_atomically(dir / "bad", std::string_view(damaged));
    EXPECT_EQ(KnownShards::load(dir / "bad").find("a.tar", state, 10), nullptr) << at;
  }
}

// A shard of the same size, written during the run, has other samples in the same places.
TEST_F(Shards, OneThatChangesDuringARunEndsIt) {
  write_shard("s-0.tar", 0, 3);
  write_shard("s-1.tar", 10, 3);
  const auto index = std::make_shared<PictureIndex>(index_shards(pattern("s-{0,1}.tar"), {10}));
  const auto bytes = read_file(dir_ / "s-0.tar");
  write_file_atomically(dir_ / "s-0.tar", std::string_view(bytes));
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(dir_ / "s-0.tar", past);
  const std::string line =
      pattern("s-0.tar") + " has changed since this run read its index; the next run reads it anew";
  for (const auto bad : {BadSample::kReplaced, BadSample::kLeftOut}) {
    const PictureReader reader(index, PicturePipeline({}, 1), bad, 1);
    const auto error = error_of([&] { reader.read(0, std::vector<int64_t>{3, 0}); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.what(), line);
    EXPECT_TRUE(reader.read(0, std::vector<int64_t>{3, 4}).faults.empty());
  }
  const auto next = index_shards(pattern("s-{0,1}.tar"), {10});
  EXPECT_EQ(next.digest(), index->digest());
}

// A thread keeps some shards open.
TEST_F(Shards, OneThatIsReplacedIsOpenedAnew) {
  write_file_atomically(dir_ / "s.tar", std::string_view("one, two"));
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(dir_ / "s.tar", past);
  const FilePart part{5, 3, ShardFile(dir_ / "s.tar").state()};
  EXPECT_EQ(read_bytes(dir_ / "s.tar", part), "two");
  write_file_atomically(dir_ / "s.tar", std::string_view("six, ten"));
  fs::last_write_time(dir_ / "s.tar", past);
  EXPECT_EQ(read_bytes(dir_ / "s.tar", part), "ten") << "its size and time are the same";
  fs::last_write_time(dir_ / "s.tar", past + std::chrono::seconds(1));
  EXPECT_THROW(read_bytes(dir_ / "s.tar", part), DataChanged) << "its time is another";
  fs::last_write_time(dir_ / "s.tar", past);
  EXPECT_EQ(read_bytes(dir_ / "s.tar", part), "ten");
  fs::resize_file(dir_ / "s.tar", 6);
  EXPECT_THROW(read_bytes(dir_ / "s.tar", part), DataChanged) << "it is shorter";
  fs::remove(dir_ / "s.tar");
  EXPECT_EQ(error_of([&] { read_bytes(dir_ / "s.tar", part); }).code(), ErrorCode::kNotFound);
}

TEST_F(Shards, AFewAreOpenInAThread) {
  const auto path = [&](int i) { return dir_ / fmt::format("{}.tar", i); };
  const auto count_open = [&] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto file = fs::read_symlink(entry.path(), gone).string();
      count += file.starts_with(fs::canonical(dir_.path()).string()) ? 1 : 0;
    }
    return count;
  };
  std::thread reads([&] {
    for (int i = 0; i < 12; ++i) {
      write_file_atomically(path(i), std::string_view(fmt::format("{:03}", i)));
    }
    for (const int i : {0, 1, 0, 2, 3, 4, 0, 5, 6, 7, 8, 9, 10, 11, 0, 3, 11}) {
      const FilePart part{0, 3, ShardFile(path(i)).state()};
      EXPECT_EQ(read_bytes(path(i), part), fmt::format("{:03}", i));
      EXPECT_LE(count_open(), 8);
    }
    EXPECT_EQ(count_open(), 8);
  });
  reads.join();
  EXPECT_EQ(count_open(), 0) << "they end with the thread";
}

TEST_F(Shards, ADamagedPictureNamesItsMember) {
  write_tar(
      dir_ / "s.tar",
      {{"x/a.png", "no picture"}, {"x/a.cls", "1"}, {"x/b.png", png_of(1)}, {"x/b.cls", "2"}});
  const auto index = std::make_shared<PictureIndex>(index_shards(pattern("s.tar"), {10}));
  const PictureReader reader(index, PicturePipeline({}, 1), BadSample::kLeftOut, 1);
  const auto read = reader.read(0, std::vector<int64_t>{0, 1});
  ASSERT_EQ(read.samples.size(), 1U);
  EXPECT_EQ(read.samples[0].label, 2);
  ASSERT_EQ(read.faults.size(), 1U);
  EXPECT_NE(read.faults[0].find("sample 0 cannot be used: " + pattern("s.tar") + ": x/a.png: "),
            std::string::npos)
      << read.faults[0];
}

}  // namespace
}  // namespace lockstep
