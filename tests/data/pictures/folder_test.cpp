#include "lockstep/data/pictures/folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// Only names matter for an index.
void make_file(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
}

Names names_of(const PictureIndex& index) {
  Names names;
  for (int64_t i = 0; i < index.size(); ++i) {
    names.push_back(std::to_string(index.label(i)) + " " + std::string(index.name(i)));
  }
  return names;
}

TEST(PictureFolder, OrdersClassesFoldersAndNamesByTheirBytes) {
  const TempFolder dir;
  for (const char* name : {"b/2.png", "b/10.png", "b/sub/1.jpg", "b/sub.d/1.jpg", "b/z.JPEG",
                           "Z/x.webp", "Z/x.bmp", "Z/y.Png", "10/a.jpg", "9/a.jpg"}) {
    make_file(dir / name);
  }
  const auto index = index_folder(dir.path());
  EXPECT_EQ(index.classes().names, (Names{"10", "9", "Z", "b"}));
  EXPECT_EQ(names_of(index),
            (Names{"0 10/a.jpg", "1 9/a.jpg", "2 Z/x.bmp", "2 Z/x.webp", "2 Z/y.Png", "3 b/10.png",
                   "3 b/2.png", "3 b/z.JPEG", "3 b/sub/1.jpg", "3 b/sub.d/1.jpg"}));
  EXPECT_EQ(index.path(3), dir / "Z/x.webp");
  EXPECT_TRUE(index.warnings().empty());
}

TEST(PictureFolder, LeavesOutWhatIsNoPicture) {
  const TempFolder dir;
  for (const char* name : {"a/1.png", "a/._1.png", "a/.cache/2.png", "a/notes.txt", "a/png",
                           ".hidden/3.png", "top.png"}) {
    make_file(dir / name);
  }
  const auto index = index_folder(dir.path());
  EXPECT_EQ(names_of(index), Names{"0 a/1.png"});
  EXPECT_EQ(index.classes().names, Names{"a"});
}

TEST(PictureFolder, LeavesOutPipesAndLinksToThem) {
  const TempFolder dir;
  make_file(dir / "a/1.jpg");
  ASSERT_EQ(::mkfifo((dir / "a/2.jpg").c_str(), 0600), 0);
  fs::create_symlink(dir / "a/2.jpg", dir / "a/3.jpg");
  EXPECT_EQ(names_of(index_folder(dir.path())), Names{"0 a/1.jpg"});
}

TEST(PictureFolder, KeepsFilesOfOneNameWithOtherExtensions) {
  const TempFolder dir;
  for (const char* name : {"a/1.png", "a/1.jpg", "a/1.jpeg"}) make_file(dir / name);
  EXPECT_EQ(names_of(index_folder(dir.path())), (Names{"0 a/1.jpeg", "0 a/1.jpg", "0 a/1.png"}));
}

TEST(PictureFolder, FollowsLinksButNotInCircles) {
  const TempFolder dir;
  make_file(dir / "elsewhere/far.png");
  make_file(dir / "data/a/1.png");
  fs::create_directory_symlink(dir / "elsewhere", dir / "data/b");
  fs::create_directory_symlink(dir / "data/a", dir / "data/a/again");
  fs::create_symlink(dir / "nowhere.png", dir / "data/a/broken.png");
  EXPECT_EQ(names_of(index_folder(dir / "data")),
            (Names{"0 a/1.png", "0 a/broken.png", "1 b/far.png"}));
}

TEST(PictureFolder, AClassWithoutPicturesIsANote) {
  const TempFolder dir;
  make_file(dir / "b/1.png");
  fs::create_directory(dir / "a");
  make_file(dir / "c/readme.txt");
  const auto index = index_folder(dir.path());
  EXPECT_EQ(names_of(index), Names{"1 b/1.png"});
  EXPECT_EQ(index.warnings(), (Names{dir.path().string() + ": no picture of 2 classes: a, c",
                                     dir.path().string() + ": only one class, b"}));
}

TEST(PictureFolder, AFolderOfMacOsIsNoClass) {
  const TempFolder dir;
  for (const char* name : {"a/1.png", "b/1.png", "__MACOSX/a/._1.png", "a/__MACOSX/2.png"}) {
    make_file(dir / name);
  }
  const auto index = index_folder(dir.path());
  EXPECT_EQ(names_of(index), (Names{"0 a/1.png", "1 b/1.png"}));
  EXPECT_TRUE(index.warnings().empty());
}

TEST(PictureFolder, AClassAloneIsANote) {
  const TempFolder dir;
  make_file(dir / "flowers/1.png");
  const std::string line = dir.path().string() + ": only one class, flowers";
  EXPECT_EQ(index_folder(dir.path()).warnings(), Names{line});
  const auto classes = PictureClasses::named({"flowers"});
  EXPECT_TRUE(index_folder(dir.path(), {}, classes).warnings().empty()) << "a second line";
  make_file(dir / "flowers/deep/cat/1.png");
  EXPECT_EQ(index_folder(dir.path()).warnings(), Names{line});
  make_file(dir / "flowers/deep/dog/1.png");
  EXPECT_EQ(index_folder(dir.path()).warnings(),
            Names{line + ": the classes are probably in " + (dir / "flowers/deep").string() +
                  ", which has the folders cat, dog"});
}

TEST(PictureFolder, PartsThatCountAsClassesAreANote) {
  const TempFolder dir;
  for (const char* name : {"Train/a/1.png", "more/a/1.png", "testing/a/1.png"}) {
    make_file(dir / name);
  }
  EXPECT_EQ(index_folder(dir.path()).warnings(),
            Names{dir.path().string() +
                  ": Train and testing count as classes; if they are pictures for training and for "
                  "evaluation, name " +
                  (dir / "Train").string() + " as the folder"});
}

TEST(PictureFolder, FindsPartsByTheirNames) {
  const auto splits = SplitFolders::among({"TEST", "Training", "VAL", "b", "train", "val"});
  EXPECT_EQ(splits.train, "train");
  EXPECT_EQ(splits.eval, "val");
  EXPECT_EQ(splits.others, 2U) << "b, and a second one for training";
  EXPECT_TRUE(SplitFolders::among({"trains", "value"}).train.empty());
}

TEST(PictureFolder, MissingDataAreNotFound) {
  const TempFolder dir;
  const auto missing = error_of([&] { index_folder(dir / "none"); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_EQ(std::string(missing.what()), "no folder " + (dir / "none").string());
  make_file(dir / "1.png");
  const std::string none =
      dir.path().string() + " holds no picture (.jpg, .jpeg, .png, .bmp, .webp) in a sub-folder";
  EXPECT_EQ(std::string(error_of([&] { index_folder(dir.path()); }).what()), none);
  fs::create_directory(dir / "a");
  const auto empty = error_of([&] { index_folder(dir.path()); });
  EXPECT_EQ(empty.code(), ErrorCode::kNotFound);
  EXPECT_EQ(std::string(empty.what()), none);
}

TEST(PictureFolder, EvaluationHasTheClassesOfTraining) {
  const TempFolder dir;
  for (const char* name : {"dog/1.png", "ape/1.png"}) make_file(dir / name);
  const auto classes = PictureClasses::named({"dog", "cat", "ape"});
  const auto index = index_folder(dir.path(), {}, classes);
  EXPECT_EQ(names_of(index), (Names{"0 dog/1.png", "2 ape/1.png"}));
  EXPECT_EQ(index.classes(), classes);
  make_file(dir / "cta/1.png");
  const auto error = error_of([&] { index_folder(dir.path(), {}, classes); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()),
            (dir / "cta").string() + ": training has no class 'cta', did you mean 'cat'?");
}

TEST(PictureFolder, ClassesOfNumbersTakeFoldersOfNumbers) {
  const TempFolder dir;
  for (const char* name : {"10/1.png", "9/1.png"}) make_file(dir / name);
  EXPECT_EQ(names_of(index_folder(dir.path(), {}, PictureClasses{11})),
            (Names{"9 9/1.png", "10 10/1.png"}));
  EXPECT_EQ(std::string(error_of([&] { index_folder(dir.path(), {}, PictureClasses{10}); }).what()),
            (dir / "10").string() + ": training has no class '10'; allowed: 0 to 9");
}

TEST(PictureFolder, HoldsOutAPartOfEachClass) {
  const TempFolder dir;
  for (int i = 0; i < 40; ++i) make_file(dir / ("a/" + std::to_string(i) + ".png"));
  for (int i = 0; i < 3; ++i) make_file(dir / ("b/" + std::to_string(i) + ".png"));
  make_file(dir / "c/0.png");
  const auto part = [&](Split split) {
    const auto names = names_of(index_folder(dir.path(), {.held_out = 10, .split = split}));
    return std::set<std::string>(names.begin(), names.end());
  };
  const auto train = part(Split::kTrain), test = part(Split::kTest), all = part(Split::kAll);
  const auto count = [](const auto& names, char label) {
    return std::count_if(names.begin(), names.end(),
                         [&](const auto& name) { return name[0] == label; });
  };
  EXPECT_EQ(all.size(), 44U);
  EXPECT_EQ(count(test, '0'), 4);
  EXPECT_EQ(count(test, '1'), 1);
  EXPECT_EQ(count(test, '2'), 0);  // its only picture is for training
  std::set<std::string> both = train;
  both.insert(test.begin(), test.end());
  EXPECT_EQ(both, all);
  EXPECT_EQ(train.size() + test.size(), all.size());
}

TEST(PictureFolder, HoldsNothingOutOfSinglePictures) {
  const TempFolder dir;
  make_file(dir / "a/1.png");
  EXPECT_EQ(std::string(error_of([&] {
                          index_folder(dir.path(), {.held_out = 10, .split = Split::kTest});
                        }).what()),
            dir.path().string() + ": no class has two pictures, of which one could be held out");
}

TEST(PictureFolder, RatioTakesTheBeginningOfEachClass) {
  const TempFolder dir;
  for (int i = 0; i < 4; ++i) make_file(dir / ("a/" + std::to_string(i) + ".png"));
  make_file(dir / "b/7.png");
  EXPECT_EQ(names_of(index_folder(dir.path(), {.ratio = 0.5})),
            (Names{"0 a/0.png", "0 a/1.png", "1 b/7.png"}));
}

TEST(PictureFolder, TakesTwelveBytesAPicture) {
  const TempFolder dir;
  for (int i = 0; i < 300; ++i) {
    make_file(dir / std::to_string(i % 7) / (std::to_string(i) + ".png"));
  }
  const auto index = index_folder(dir.path());
  EXPECT_EQ(index.size(), 300);
  EXPECT_LE(index.memory_bytes(), 300U * 12);
}

TEST(PictureFolder, HoldsOutByTheWholeNames) {
  // The pictures that are held out stay the same from version to version.
  const TempFolder dir;
  for (int i = 0; i < 20; ++i) make_file(dir / fmt::format("a/{}{}.png", i < 9 ? "s/" : "", i));
  EXPECT_EQ(names_of(index_folder(dir.path(), {.held_out = 10, .split = Split::kTest})),
            (Names{"0 a/s/2.png", "0 a/s/8.png"}));
  auto half =
      names_of(index_folder(dir.path(), {.held_out = 10, .split = Split::kTrain, .ratio = 0.5}));
  EXPECT_EQ(half.size(), 9U);
}

}  // namespace
}  // namespace lockstep
