#include "lockstep/base/file.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
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

}  // namespace
}  // namespace lockstep
