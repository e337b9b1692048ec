#include "lockstep/base/folder.h"

#include <gtest/gtest.h>

#include <chrono>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "tests/support/broken_folders.h"
#include "tests/support/error_of.h"
#include "tests/support/killed_parent.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

TEST(MakeFolder, MakesAllOfThemOrSaysWhyNot) {
  const TempFolder dir;
  make_folder(dir / "x/y");
  make_folder(dir / "x/y/");
  EXPECT_TRUE(std::filesystem::is_directory(dir / "x/y"));
  write_file_atomically(dir / "file", std::string_view());
  try {
    make_folder(dir / "file/z");
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("file/z: Not a directory"), std::string::npos)
        << error.what();
  }
}

TEST(NearestExisting, IsThePathOrAParent) {
  const TempFolder dir;
  EXPECT_EQ(nearest_existing(dir.path()), dir.path());
  EXPECT_EQ(nearest_existing(dir / "x/y"), dir.path());
  write_file_atomically(dir / "file", std::string_view());
  EXPECT_EQ(nearest_existing(dir / "file/z"), dir / "file");
  EXPECT_EQ(nearest_existing("no such name/x"), "");
}

TEST(FillFolder, GivesTheNameWhenAllIsThereAndLeavesNothingElse) {
  const TempFolder dir;
  const auto path = dir / "data", temporary = dir / "data.tmp";
  make_folder(temporary / "of a process that was killed");
  std::filesystem::create_directory(path);
  fill_folder(path, [&](const std::filesystem::path& folder) {
    EXPECT_EQ(folder, temporary);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_TRUE(std::filesystem::is_empty(path));
    write_file_atomically(folder / "file", "1");
  });
  EXPECT_TRUE(std::filesystem::exists(path / "file"));
  EXPECT_FALSE(std::filesystem::exists(temporary));
  EXPECT_THROW(fill_folder(dir / "none",
                           [](const std::filesystem::path& folder) {
                             write_file_atomically(folder / "file", "1");
                             throw Error(ErrorCode::kCorrupt, "x");
                           }),
               Error);
  EXPECT_FALSE(std::filesystem::exists(dir / "none"));
  EXPECT_FALSE(std::filesystem::exists(dir / "none.tmp"));
}

TEST(NumberedPath, IsTheFirstThatIsFree) {
  const TempFolder dir;
  const auto stem = dir / "run.txt";
  EXPECT_EQ(numbered_path(stem), dir / "run.txt.1");
  make_folder(dir / "run.txt.1");
  std::filesystem::create_symlink("nowhere", dir / "run.txt.2");
  write_file_atomically(dir / "run.txt.4", std::string_view());
  EXPECT_EQ(numbered_path(stem), dir / "run.txt.3");
}

TEST(FolderLock, HoldsUntilItsEndAndAcrossARename) {
  const TempFolder dir;
  const auto a = dir / "a", b = dir / "b";
  std::filesystem::create_directory(a);
  {
    const auto first = FolderLock::take(a);
    ASSERT_TRUE(first);
    EXPECT_FALSE(FolderLock::take(a));
    std::filesystem::rename(a, b);
    EXPECT_FALSE(FolderLock::take(b));
  }
  EXPECT_TRUE(FolderLock::take(b));
  EXPECT_TRUE(std::filesystem::is_empty(b));
}

TEST(FolderLock, AwaitsItUntilTheDeadline) {
  const TempFolder dir;
  int waits = 0;
  auto first = FolderLock::take(dir.path());
  EXPECT_FALSE(FolderLock::await(dir.path(), Deadline::after(1s), [&] { ++waits; }));
  EXPECT_LE(waits, 1) << "once for all of them";
  EXPECT_TRUE(FolderLock::await(dir.path(), Deadline::after(60s), [&] { first.reset(); }));
  EXPECT_TRUE(FolderLock::await(dir.path(), Deadline::after(0s), [&] { waits = 9; }));
  EXPECT_LE(waits, 1);
}

TEST(FolderLock, AForkedChildDoesNotKeepIt) {
  const TempFolder dir;
  const testing::KilledParent parent([&](const auto& end) {
    const auto lock = FolderLock::take(dir.path());
    if (lock) end();
  });
  EXPECT_TRUE(FolderLock::take(dir.path()));
}

TEST(FolderLock, WantsAFolder) {
  const TempFolder dir;
  EXPECT_THROW(FolderLock::take(dir / "none"), Error);
}

TEST(ListFolder, HasAllNamesOrIsAnError) {
  const TempFolder dir;
  for (const char* name : {"b", "a", "c"}) write_file_atomically(dir / name, "");
  const std::vector<std::string> all = {"a", "b", "c"};
  EXPECT_EQ(list_folder(dir.path()), all);
  EXPECT_EQ(entry_names(dir.path()), all);
  EXPECT_EQ(error_of([&] { list_folder(dir / "none"); }).code(), ErrorCode::kIo);
  EXPECT_EQ(error_of([&] { list_folder(dir / "a"); }).code(), ErrorCode::kIo) << "it is a file";
  EXPECT_TRUE(entry_names(dir / "none").empty());
  const testing::BrokenFolders broken(EIO);
  const Error error = error_of([&] { list_folder(dir.path()); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_EQ(std::string(error.what()), "list " + dir.path().string() + ": Input/output error");
  EXPECT_EQ(entry_names(dir.path()).size(), 1U) << "those before it";
}

}  // namespace
}  // namespace lockstep
