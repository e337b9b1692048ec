#include "lockstep/base/file.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

TEST(OutputFile, FolderMustExistAndTheFileIsNotMade) {
  const TempFolder folder;
  check_output_file(folder / "new.json");
  check_output_file("new.json");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const auto missing = error_of([&] { check_output_file(folder / "none/new.json"); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(missing.what()).find("there is no folder"), std::string::npos);
  const auto in_place = error_of([&] { check_output_file(folder.path()); });
  EXPECT_EQ(in_place.code(), ErrorCode::kInvalidArgument);
}

TEST(OutputFile, AFolderThatTakesNoFileIsNamed) {
  const TempFolder made;
  std::filesystem::permissions(made.path(), std::filesystem::perms::owner_read);
  const auto path = made / "new.json";
  testing::as_ordinary_user([&] {
    const auto refused = error_of([&] { check_output_file(path); });
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(std::string(refused.what()), path.string() + " cannot be written: folder " +
                                               made.path().string() + ": Permission denied");
  });
}

TEST(OutputFile, ErrorsOfWritingHaveTheNameThatWasGiven) {
  const TempFolder folder;
  const auto path = folder / "none/new.json";
  const auto failed = error_of([&] { write_file_atomically(path, std::string_view("x")); });
  EXPECT_EQ(failed.code(), ErrorCode::kIo);
  EXPECT_EQ(std::string(failed.what()), "create " + path.string() + ": No such file or directory");
}

}  // namespace
}  // namespace lockstep
