#include "lockstep/observe/log_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

std::vector<std::string> whole_lines_of(const std::filesystem::path& path,
                                        int64_t most_bytes = int64_t{1} << 40) {
  std::vector<std::string> lines;
  each_whole_line(
      path, [&](std::string_view line) { lines.emplace_back(line); }, most_bytes);
  return lines;
}

TEST(WholeLines, ComeOneByOne) {
  const TempFolder dir;
  write_file_atomically(dir / "f", std::string_view("one\n\nthree\ncut off"));
  EXPECT_EQ(whole_lines_of(dir / "f"), (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(error_of([&] { whole_lines_of(dir / "none"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { whole_lines_of(dir.path()); }).code(), ErrorCode::kIo);
}

TEST(WholeLines, OneThatNeverEndsIsCut) {
  const TempFolder dir;
  write_file_atomically(dir / "f", std::string(3 * kMaxLine, 'x') + "\nnext\n");
  const auto lines = whole_lines_of(dir / "f");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), kMaxLine);
  EXPECT_EQ(lines[1], "next");
}

TEST(WholeLines, OfALargeFileSomeAreRead) {
  const TempFolder dir;
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += std::to_string(1'000'000 + i) + "\n";
  write_file_atomically(dir / "f", text);
  EXPECT_EQ(whole_lines_of(dir / "f").size(), 1'000'000U);
  const auto lines = whole_lines_of(dir / "f", 2 << 20);
  EXPECT_LT(lines.size() * 8, size_t{4} << 20);
  EXPECT_GT(lines.size() * 8, size_t{1} << 20);
  EXPECT_EQ(lines.front(), "1000000");
  EXPECT_EQ(lines.back(), "1999999");
  int64_t largest_gap = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i].size(), 7U) << lines[i];
    if (i > 0) largest_gap = std::max(largest_gap, std::stol(lines[i]) - std::stol(lines[i - 1]));
  }
  EXPECT_LT(largest_gap, 200'000);
}

}  // namespace
}  // namespace lockstep
