#include "lockstep/data/pictures/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <fstream>

#include "lockstep/base/file.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/usable_samples.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

/// A data set of the folders a and b, which were changed an hour ago.
class Listing : public ::testing::Test {
 protected:
  Listing() {
    for (const char* name : {"a/1.png", "a/2.png", "b/3.png", "b/notes.txt", "b/.4.png"}) add(name);
  }
  void add(const std::string& name, bool settled = true) {
    const fs::path path = data_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    if (!settled) return;
    age_ += std::chrono::seconds(1);
    const auto then = fs::file_time_type::clock::now() - std::chrono::hours(1) + age_;
    fs::last_write_time(path.parent_path(), then);
    fs::last_write_time(data_, then);
  }
  /// Of the folder, which is read now, or was before.
  Strings pictures(FolderListing& listing, const std::string& below, bool is_read = false) const {
    if (!is_read) listing.read(below);
    const auto text = listing.names(1'000);
    const FolderNames names = listing.of(below);
    NameWindow window(*text);
    Strings found;
    for (uint64_t at = names.begin; at < names.begin + names.bytes; at += found.back().size() + 1) {
      found.emplace_back(window.part(at).value());
    }
    EXPECT_EQ(std::ssize(found), names.count);
    EXPECT_EQ(window.at(names.folder, below.size()), below);
    return found;
  }
  /// Reads all folders and keeps them; the number that was read from the disk.
  int64_t run() const {
    FolderListing listing(data_, file_);
    for (const char* below : {"", "a", "b"}) listing.read(below);
    listing.names(1);
    return listing.num_read();
  }
  /// More pictures than must be for a kept listing, with names of 104 bytes.
  void add_many() {
    for (int i = 0; i < kMany; ++i) {
      const std::string name = std::to_string(10'000 + i) + std::string(95, 'n') + ".jpg";
      fs::create_hard_link(data_ / "a/1.png", data_ / "a" / name);  // sooner made than a file
    }
    add("a/last.png");
  }
  PictureIndex index(const fs::path& file) const { return index_folder(data_, {.listing = file}); }
  static Strings names_of(const PictureIndex& index) {
    Strings all;
    for (int64_t i = 0; i < index.size(); ++i) all.push_back(index.name(i));
    return all;
  }
  static size_t heap_in_use() {
    const auto info = ::mallinfo2();  // zeros under AddressSanitizer
    return info.uordblks + info.hblkhd;
  }

  static constexpr int kMany = 10'000;
  TempFolder dir_;
  fs::path data_ = dir_ / "data";
  fs::path file_ = dir_ / "cache/pictures/x";
  std::chrono::seconds age_{0};
};

TEST_F(Listing, OfAnUnchangedFolderIsKnown) {
  EXPECT_EQ(run(), 3);
  EXPECT_EQ(run(), 0);
  FolderListing listing(data_, file_);
  EXPECT_EQ(pictures(listing, "a"), (Strings{"1.png", "2.png"}));
  EXPECT_EQ(pictures(listing, "b"), Strings{"3.png"});
  EXPECT_EQ(listing.read(""), (Strings{"a", "b"}));
  EXPECT_EQ(listing.num_read(), 0);
}

TEST_F(Listing, OfAChangedFolderIsReadAgain) {
  EXPECT_EQ(run(), 3);
  add("b/5.png");
  FolderListing listing(data_, file_);
  for (const char* below : {"a", "b"}) listing.read(below);
  EXPECT_EQ(pictures(listing, "b", /*is_read=*/true), (Strings{"3.png", "5.png"}));
  EXPECT_EQ(pictures(listing, "a", /*is_read=*/true), (Strings{"1.png", "2.png"}));
  EXPECT_EQ(listing.num_read(), 1);
}

TEST_F(Listing, OfAFolderThatJustChangedIsNotKept) {
  add("b/5.png", /*settled=*/false);
  EXPECT_EQ(run(), 3);
  EXPECT_EQ(run(), 1) << "b might have changed again at the same time";
}

TEST_F(Listing, ThatIsDamagedCountsAsNone) {
  EXPECT_EQ(run(), 3);
  const std::string whole = read_file(file_);
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(file_, std::ios::binary) << whole.substr(0, size);
    FolderListing listing(data_, file_);
    EXPECT_EQ(pictures(listing, "a"), (Strings{"1.png", "2.png"})) << size;
    EXPECT_EQ(listing.num_read(), 1) << size;
  }
}

TEST_F(Listing, WhoseNamesRunTogetherCountsAsNone) {
  EXPECT_EQ(run(), 3);
  const std::string whole = read_file(file_);
  for (size_t at = whole.find('\0'); at != whole.npos; at = whole.find('\0', at + 1)) {
    std::string damaged = whole;
    damaged[at] = 'x';
    write_file_atomically(file_, std::string_view(damaged));
    FolderListing listing(data_, file_);
    EXPECT_EQ(pictures(listing, "a"), (Strings{"1.png", "2.png"})) << at;
    EXPECT_EQ(listing.num_read(), 1) << at;
  }
}

TEST_F(Listing, OfAnotherFolderCountsAsNone) {
  EXPECT_EQ(run(), 3);
  fs::rename(data_, dir_ / "moved");
  FolderListing listing(dir_ / "moved", file_);
  listing.read("a");
  EXPECT_EQ(listing.num_read(), 1);
}

TEST_F(Listing, OfFewPicturesIsNotKept) {
  FolderListing listing(data_, file_);
  EXPECT_EQ(pictures(listing, "a"), (Strings{"1.png", "2.png"}));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Listing, NeedsNoPlaceToBeKept) {
  std::ofstream(dir_ / "cache") << "a file in the way of the folder";
  EXPECT_EQ(run(), 3);
  EXPECT_EQ(run(), 3);
}

TEST_F(Listing, GivesTheSameIndex) {
  add_many();
  const auto plain = index({});
  EXPECT_EQ(plain.size(), kMany + 4);
  for (const char* start : {"first", "second"}) {
    const auto kept = index(file_);
    EXPECT_TRUE(fs::exists(file_));
    EXPECT_EQ(names_of(kept), names_of(plain)) << start;
    EXPECT_EQ(kept.digest(), plain.digest()) << start;
  }
  add("b/0.png");
  EXPECT_NE(index(file_).digest(), plain.digest());
  std::ofstream(dir_ / "file") << "in the way of the folder";
  EXPECT_EQ(names_of(index(dir_ / "file/x")), names_of(index(file_)));
}

TEST_F(Listing, KeepsNamesOutOfMemory) {
  add_many();
  constexpr size_t kMost = 24 * kMany;
  for (const char* start : {"first", "second"}) {
    const size_t before = heap_in_use();
    const auto kept = index(file_);
    const size_t after = heap_in_use();
    EXPECT_LE(kept.memory_bytes(), kMost) << start;
    EXPECT_LE(after, before + kMost) << start;
  }
}

TEST_F(Listing, ThatIsKeptNowhereTakesLittleMemory) {
  add_many();
  constexpr size_t kMost = 24 * kMany;
  const size_t before = heap_in_use();
  const auto unkept = index({});
  const size_t after = heap_in_use();
  EXPECT_LE(unkept.memory_bytes(), kMost);
  EXPECT_LE(after, before + kMost) << "the listing has gone";
}

TEST_F(Listing, OfFoldersOfOnePictureTakesLittleMemory) {
  for (int i = 0; i < kMany; ++i) {
    const fs::path folder = data_ / "a" / std::to_string(i);
    fs::create_directory(folder);
    fs::create_hard_link(data_ / "a/1.png", folder / "1.png");
  }
  const auto kept = index(file_);
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_LE(kept.memory_bytes(), size_t{24} * kMany);
  EXPECT_EQ(names_of(kept), names_of(index({})));
}

// 64 hexadecimal digits, as names that are hashes of the pictures have them.
TEST_F(Listing, ThatCannotBeKeptMayStillHaveNamesInAFile) {
  for (int i = 0; i < kMany; ++i) {
    const auto number = static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15;
    const std::string name = fmt::format("{0:016x}{0:016x}{0:016x}{0:016x}.jpg", number);
    fs::create_hard_link(data_ / "a/1.png", data_ / "a" / name);
  }
  fs::create_directories(file_ / "in the way of the file");
  const auto in_memory = index({});
  EXPECT_GT(in_memory.memory_bytes(), size_t{24} * kMany);
  const auto in_file = index(file_);
  EXPECT_LE(in_file.memory_bytes(), size_t{24} * kMany);
  EXPECT_EQ(in_file.digest(), in_memory.digest());
  EXPECT_EQ(names_of(in_file), names_of(in_memory));
}

TEST_F(Listing, OfAFolderThatJustChangedStillHasTheNames) {
  add_many();
  add("b/5.png", /*settled=*/false);
  const auto kept = index(file_);
  EXPECT_LE(kept.memory_bytes(), 24U * kMany);
  EXPECT_EQ(kept.name(kept.size() - 1), "b/5.png");
}

TEST_F(Listing, ThatIsReplacedOrRemovedIsStillRead) {
  add_many();
  const auto first = index(file_);
  const auto names = names_of(first);
  add("a/0.png");
  const auto second = index(file_);
  EXPECT_EQ(second.name(0), "a/0.png");
  EXPECT_EQ(names_of(first), names);
  fs::remove(file_);
  EXPECT_EQ(names_of(first), names);
  EXPECT_EQ(second.size(), first.size() + 1);
}

// A mapped file would end the process by SIGBUS.
TEST_F(Listing, ThatIsCutShortDuringARunIsAnError) {
  add_many();
  const auto kept = index(file_);
  fs::resize_file(file_, 100);
  const auto use = [&](const auto& body) {
    try {
      body();
      ADD_FAILURE() << "no error";
    } catch (const DataChanged& error) {
      EXPECT_EQ(std::string(error.what()),
                file_.string() +
                    ": has become shorter; this run has the names of its pictures "
                    "there, and the next one lists them anew");
    }
  };
  use([&] { kept.path(3); });
  use([&] { kept.digest(); });
  EXPECT_EQ(index(file_).size(), kept.size());
}

}  // namespace
}  // namespace lockstep
