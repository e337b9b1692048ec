#include "lockstep/data/pictures/recipe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "lockstep/train/config/config.h"
#include "lockstep/train/config/yaml_reader.h"
#include "tests/data/pictures/drawn.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

void draw_class(const std::filesystem::path& folder, int count, cv::Size size) {
  for (int i = 0; i < count; ++i) {
    write_picture(folder / (std::to_string(i) + ".png"), drawn_picture(size.width, size.height, i));
  }
}

/// The trainer reads what is written.
Config config_of(const FolderFacts& facts) {
  return read_config(parse_yaml(recipe_yaml(facts, choose_recipe(facts), "runs/x"), "x.yaml"));
}

TEST(Recipe, HoldsATenthOutOfAFolderOfClasses) {
  const TempFolder dir;
  draw_class(dir / "cat", 20, {70, 50});
  draw_class(dir / "\"dog\": 'a'", 12, {60, 90});
  const auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.train, dir.path());
  EXPECT_TRUE(facts.eval.empty());
  EXPECT_EQ(facts.classes.names, (std::vector<std::string>{"\"dog\": 'a'", "cat"}));
  EXPECT_EQ(facts.train_pictures, 29);  // 20 - 2 and 12 - 1
  EXPECT_EQ(facts.eval_pictures, 3);
  EXPECT_EQ(facts.shorter_side, 50);
  const Config config = config_of(facts);
  EXPECT_EQ(config.model.head.num_classes, 2);
  EXPECT_EQ(std::get<ClassNames>(config.postprocess).label_list, facts.classes.names);
  EXPECT_EQ(config.train.dataset.held_out, 10);
  EXPECT_EQ(config.eval->dataset.held_out, 10);
  EXPECT_EQ(config.train.dataset.data_dirs.front(), dir.path());
  EXPECT_EQ(config.train.ckpt_save_dir, "runs/x");
  EXPECT_EQ(config.model.backbone.stem, Stem::kImageNet);
  const auto first_step = [](const DatasetConfig& dataset) {
    return dataset.transforms.front().step;
  };
  EXPECT_EQ(std::get<RandomResizedCrop>(first_step(config.train.dataset)).size.height, 64);
  EXPECT_EQ(std::get<ResizePicture>(first_step(config.eval->dataset)).shorter, 73);
}

TEST(Recipe, ShowsTheBalancedSampler) {
  const TempFolder dir;
  draw_class(dir / "a", 12, {32, 32});
  draw_class(dir / "b", 2, {32, 32});
  const auto facts = look_at_folder(dir.path());
  EXPECT_FALSE(config_of(facts).train.loader.balanced);
  std::string text = recipe_yaml(facts, choose_recipe(facts), "runs/x");
  const std::string line = "    sampler: random  # balanced: each class as often as any other\n";
  const size_t at = text.find(line);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find("sampler", at + line.size()), std::string::npos) << "not of `eval`";
  text.replace(at, line.size(), "    sampler: balanced\n");
  EXPECT_TRUE(read_config(parse_yaml(text, "x.yaml")).train.loader.balanced);
}

TEST(Recipe, NotesClassesThatAreFarFromBalanced) {
  const TempFolder dir;
  draw_class(dir / "a", 10, {32, 32});
  draw_class(dir / "b", 4, {32, 32});
  std::filesystem::create_directory(dir / "none");
  auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.largest_class, 9) << "one of each is held out";
  EXPECT_EQ(facts.smallest_class, 3);
  EXPECT_EQ(unbalanced_note(facts),
            "Classes: 3 to 9 pictures; sampler: balanced in train.loader draws them alike");
  facts.largest_class = 8;
  EXPECT_EQ(unbalanced_note(facts), "");
}

TEST(Recipe, TakesTheFoldersOfTrainingAndEvaluation) {
  const TempFolder dir;
  draw_class(dir / "train/a", 3, {32, 32});
  draw_class(dir / "train/b", 3, {32, 32});
  draw_class(dir / "val/b", 2, {32, 32});
  const auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.eval, dir / "val");
  EXPECT_EQ(facts.train_pictures, 6);
  EXPECT_EQ(facts.eval_pictures, 2);
  const Config config = config_of(facts);
  EXPECT_EQ(config.eval->dataset.data_dirs.front(), dir / "val");
  EXPECT_EQ(config.eval->dataset.held_out, 0);
  EXPECT_EQ(config.model.backbone.stem, Stem::kCifar);
  EXPECT_EQ(config.train.loader.batch_size, 2) << "each of two ranks has three pictures";
}

TEST(Recipe, TakesPartsOfAnyUsualName) {
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"Train", "Val"}, {"training", "testing"}, {"training", "validation"}, {"TRAIN", "TEST"}};
  for (const auto& [train, eval] : parts) {
    const TempFolder dir;
    for (const char* name : {"a", "b"}) {
      draw_class(dir / train / name, 3, {32, 32});
      draw_class(dir / eval / name, 2, {32, 32});
    }
    std::filesystem::create_directory(dir / "__MACOSX");
    const auto facts = look_at_folder(dir.path());
    EXPECT_EQ(facts.train, dir / train);
    EXPECT_EQ(facts.eval, dir / eval);
    EXPECT_TRUE(facts.warnings.empty());
  }
}

TEST(Recipe, NotesWhatIsOddAboutTheClasses) {
  const TempFolder dir;
  for (const char* name : {"Train/a", "Val/a", "more/a"}) draw_class(dir / name, 3, {32, 32});
  std::filesystem::create_directory(dir / "none");
  const auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.train, dir.path());
  ASSERT_EQ(facts.warnings.size(), 2U);
  EXPECT_EQ(facts.warnings[0], dir.path().string() + ": no picture of 1 class: none");
  EXPECT_NE(facts.warnings[1].find("Train and Val count as classes"), std::string::npos);
}

TEST(Recipe, AClassMayBeCalledTrain) {
  const TempFolder dir;
  for (const char* name : {"bus", "car", "train"}) draw_class(dir / name, 12, {32, 32});
  const auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.train, dir.path());
  EXPECT_TRUE(facts.eval.empty());
  EXPECT_EQ(facts.classes.names, (std::vector<std::string>{"bus", "car", "train"}));
}

TEST(Recipe, OtherFilesAndHiddenFoldersBesideTheSplitsDoNotCount) {
  const TempFolder dir;
  draw_class(dir / "train/a", 3, {32, 32});
  draw_class(dir / "test/a", 2, {32, 32});
  std::filesystem::create_directory(dir / ".cache");
  std::ofstream(dir / "README.md") << "pictures";
  const auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.train, dir / "train");
  EXPECT_EQ(facts.eval, dir / "test");
}

TEST(Recipe, AFolderOfTrainingAloneHoldsATenthOut) {
  const TempFolder dir;
  draw_class(dir / "train/a", 4, {8, 8});
  const auto facts = look_at_folder(dir.path());
  EXPECT_EQ(facts.train, dir / "train");
  EXPECT_EQ(facts.eval_pictures, 1);
}

TEST(Recipe, ChoosesByTheFacts) {
  FolderFacts facts;
  facts.train_pictures = 100;
  const auto side_of = [&](int shorter) {
    facts.shorter_side = shorter;
    return choose_recipe(facts).side;
  };
  EXPECT_EQ(side_of(28), 32);
  EXPECT_EQ(side_of(47), 32);
  EXPECT_EQ(side_of(48), 64);
  EXPECT_EQ(side_of(96), 128);
  EXPECT_EQ(side_of(176), 224);
  EXPECT_EQ(side_of(4000), 224);
  EXPECT_EQ(choose_recipe(facts).batch_size, 8);
  EXPECT_EQ(choose_recipe(facts).epochs, 30);
  for (const auto& [pictures, batch] :
       std::map<int64_t, int64_t>{{1, 2}, {6, 2}, {12, 3}, {31, 7}, {32, 8}, {639, 8}}) {
    facts.train_pictures = pictures;
    EXPECT_EQ(choose_recipe(facts).batch_size, batch) << pictures;
  }
  facts.train_pictures = 10'000;
  EXPECT_EQ(choose_recipe(facts).batch_size, 32);
  EXPECT_EQ(choose_recipe(facts).epochs, 15);
  facts.train_pictures = 1'000'000;
  EXPECT_EQ(choose_recipe(facts).epochs, 5);
}

TEST(Recipe, TakesANetworkByName) {
  FolderFacts facts;
  facts.train_pictures = 10'000;
  facts.shorter_side = 100;
  const auto text_for = [&](const std::string& network) {
    return recipe_yaml(facts, choose_recipe(facts, network), "runs/x");
  };
  const auto mobile = text_for("mobilenet_v3_small");
  EXPECT_TRUE(mobile.starts_with("# mobilenet_v3_small on "));
  EXPECT_NE(mobile.find("  network:\n    name: \"mobilenet_v3_small\"\n  head:\n    num_classes: "),
            std::string::npos)
      << mobile;
  EXPECT_NE(mobile.find("opt: momentum"), std::string::npos);
  const auto vit = text_for("vit_s_16");
  EXPECT_NE(vit.find("    image_size: 128\n"), std::string::npos) << vit;
  EXPECT_NE(vit.find("opt: adamw"), std::string::npos);
}

TEST(Recipe, KeepsResultsOutOfThePictures) {
  const TempFolder dir;
  const auto photos = dir / "photos";
  std::filesystem::create_directory(photos);
  std::filesystem::create_directory_symlink(photos, dir / "link");
  EXPECT_EQ(results_of("runs/photos.yaml", "photos"), "runs/photos");
  EXPECT_EQ(results_of("photos.yaml", "photos"), "runs/photos");
  EXPECT_EQ(results_of("photos.yaml", "photos_of_cats"), "photos");
  EXPECT_EQ(results_of(dir / "photos.yaml", photos), "runs/photos");
  EXPECT_EQ(results_of(dir / "photos.yaml", dir / "link"), "runs/photos");
  EXPECT_EQ(results_of(photos / "a.yaml", photos), "runs/a");
  EXPECT_EQ(results_of(dir / "a.yaml", photos), dir / "a");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(photos);
  EXPECT_EQ(results_of("runs/photos.yaml", "."), dir / "runs/photos");
  EXPECT_EQ(results_of("a.yaml", photos), dir / "runs/a");
  std::filesystem::current_path(before);
}

TEST(Recipe, NeedsAPictureThatCanBeRead) {
  const TempFolder dir;
  std::filesystem::create_directory(dir / "a");
  std::ofstream(dir / "a/1.png") << "no picture";
  const auto error = error_of([&] { look_at_folder(dir.path()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("1.png: no image, or a damaged one"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
