#include "lockstep/data/pictures/listing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "lockstep/base/file.h"
#include "lockstep/data/pictures/folder.h"
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
  Strings pictures(FolderListing& listing, const std::string& below) const {
    auto names = listing.read(below).pictures;
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Reads all folders and keeps them; the number that was read from the disk.
  int64_t run() const {
    FolderListing listing(data_, file_);
    for (const char* below : {"", "a", "b"}) listing.read(below);
    listing.keep(1);
    return listing.num_read();
  }

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
  auto folders = listing.read("").folders;
  std::sort(folders.begin(), folders.end());
  EXPECT_EQ(folders, (Strings{"a", "b"}));
  EXPECT_EQ(listing.num_read(), 0);
}

TEST_F(Listing, OfAChangedFolderIsReadAgain) {
  EXPECT_EQ(run(), 3);
  add("b/5.png");
  FolderListing listing(data_, file_);
  EXPECT_EQ(pictures(listing, "b"), (Strings{"3.png", "5.png"}));
  EXPECT_EQ(pictures(listing, "a"), (Strings{"1.png", "2.png"}));
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

TEST_F(Listing, OfAnotherFolderCountsAsNone) {
  EXPECT_EQ(run(), 3);
  fs::rename(data_, dir_ / "moved");
  FolderListing listing(dir_ / "moved", file_);
  listing.read("a");
  EXPECT_EQ(listing.num_read(), 1);
}

TEST_F(Listing, OfFewPicturesIsNotKept) {
  FolderListing listing(data_, file_);
  listing.read("a");
  listing.keep(3);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Listing, NeedsNoPlaceToBeKept) {
  std::ofstream(dir_ / "cache") << "a file in the way of the folder";
  EXPECT_EQ(run(), 3);
  EXPECT_EQ(run(), 3);
}

TEST_F(Listing, GivesTheSameIndex) {
  for (int i = 0; i < 10'000; ++i) std::ofstream(data_ / "a" / (std::to_string(i) + ".jpg")) << "";
  add("a/last.png");
  const auto names = [&](const FolderOptions& options) {
    const auto index = index_folder(data_, options);
    Strings all;
    for (int64_t i = 0; i < index.size(); ++i) all.emplace_back(index.name(i));
    return all;
  };
  const auto plain = names({});
  EXPECT_EQ(plain.size(), 10'004U);
  EXPECT_EQ(names({.listing = file_}), plain);
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_EQ(names({.listing = file_}), plain);
}

}  // namespace
}  // namespace lockstep
