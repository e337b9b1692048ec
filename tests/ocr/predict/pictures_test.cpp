#include "lockstep/ocr/predict/pictures.h"

#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::write_text;

std::vector<std::string> below(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& one : find_pictures(folder)) {
    names.push_back(one.lexically_relative(folder).string());
  }
  return names;
}

TEST(FindPictures, OfAFolderAndThoseBelowSorted) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "sub/deep");
  for (const char* name : {"b.png", "a.JPG", "sub/deep/c.jpeg", "notes.txt", "jpg", "sub/d.gif",
                           "e.bmp", "sub/f.WebP"}) {
    write_text(dir / name, "x");
  }
  std::filesystem::create_directories(dir / "folder.png");
  EXPECT_EQ(below(dir.path()),
            (std::vector<std::string>{"a.JPG", "b.png", "e.bmp", "sub/deep/c.jpeg", "sub/f.WebP"}));
}

TEST(FindPictures, LeavesOutEarlierResultsAndLinksThatLeadBack) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "in/output/sub");
  std::filesystem::create_directories(dir / "other");
  for (const char* name :
       {"in/a.png", "in/output/a_res.png", "in/output/sub/x.png", "other/o.png"}) {
    write_text(dir / name, "x");
  }
  std::filesystem::create_directory_symlink(dir / "in", dir / "in/loop");
  std::filesystem::create_directory_symlink(dir / "other", dir / "in/there");
  const auto found = find_pictures(dir / "in", dir / "in/output");
  EXPECT_EQ(found, (std::vector<std::filesystem::path>{dir / "in/a.png", dir / "in/there/o.png"}));
  EXPECT_EQ(find_pictures(dir / "other", dir / "other").size(), 1U);
}

TEST(FindPictures, LeavesOutHiddenFilesAndFolders) {
  const TempDir dir;
  std::filesystem::create_directories(dir / ".hidden/deep");
  for (const char* name : {"a.png", "._a.png", ".b.png", ".hidden/c.png", ".hidden/deep/d.png"}) {
    write_text(dir / name, "x");
  }
  EXPECT_EQ(below(dir.path()), std::vector<std::string>{"a.png"});
  EXPECT_EQ(below(dir / ".hidden"), (std::vector<std::string>{"c.png", "deep/d.png"}));
}

TEST(FindPictures, AFileIsTakenWhateverItIsCalled) {
  const TempDir dir;
  for (const char* name : {"scan.bmp", ".scan"}) {
    write_text(dir / name, "x");
    EXPECT_EQ(find_pictures(dir / name).size(), 1U);
  }
}

TEST(FindPictures, SaysWhatIsMissing) {
  const TempDir dir;
  EXPECT_NE(error_of(ErrorCode::kNotFound, [&] { find_pictures(dir / "none"); })
                .find("none does not exist"),
            std::string::npos);
  write_text(dir / "a.txt", "x");
  EXPECT_NE(error_of(ErrorCode::kNotFound, [&] { find_pictures(dir.path()); }).find("no .jpg"),
            std::string::npos);
}

TEST(ResultNames, AreTheFileNamesUnlessTwoAreEqual) {
  EXPECT_EQ(result_names({"in/a.jpg", "in/b.v2.png"}, "in"),
            (std::vector<std::string>{"a", "b.v2"}));
  EXPECT_EQ(result_names({"in/a.jpg", "in/a.png", "in/sub/a.jpg", "in/z.jpg"}, "in"),
            (std::vector<std::string>{"a_jpg", "a_png", "sub_a_jpg", "z"}));
}

TEST(ResultNames, AreDifferentWhereFoldersAndDotsMeet) {
  EXPECT_EQ(result_names({"in/a.b/c.jpg", "in/a/b/c.jpg", "in/a_b_c_jpg.png"}, "in"),
            (std::vector<std::string>{"a_b_c_jpg", "a_b_c_jpg_2", "a_b_c_jpg_3"}));
}

TEST(NameBelow, IsThePathInTheFolderOrTheFilesName) {
  EXPECT_EQ(name_below("in/sub/a.jpg", "in"), "sub/a.jpg");
  EXPECT_EQ(name_below("in/a.jpg", "in/a.jpg"), "a.jpg");
}

}  // namespace
}  // namespace lockstep::ocr
