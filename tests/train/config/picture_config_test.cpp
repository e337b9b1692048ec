// Data sets of pictures in files.

#include <gtest/gtest.h>

#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

Config read_pictures(const std::vector<std::string>& overrides = {}) {
  return read_text(kPictures, overrides);
}

std::string fault_with(const std::vector<std::string>& overrides) {
  return fault_in(kPictures, overrides);
}

TEST(PictureConfig, AFolderHasItsHeldOutPartInBothSections) {
  const Config config = read_pictures();
  const auto& train = config.train.dataset;
  EXPECT_TRUE(train.has_picture_files());
  EXPECT_EQ(train.data_dirs, std::vector<std::filesystem::path>{"root/photos"});
  EXPECT_EQ(train.held_out, 10);
  EXPECT_EQ(train.usage, "train");
  EXPECT_EQ(config.eval->dataset.data_dirs, train.data_dirs) << "that of train";
  EXPECT_EQ(config.eval->dataset.usage, "test");
  EXPECT_FALSE(Config().train.dataset.has_picture_files());
}

TEST(PictureConfig, AListHasAFile) {
  const Config config =
      read_pictures({"eval.dataset={type: ImageListDataset, data_dir: /x, label_file: val.csv}"});
  const auto& eval = config.eval->dataset;
  EXPECT_TRUE(eval.has_picture_files());
  EXPECT_EQ(eval.label_files, std::vector<std::filesystem::path>{"val.csv"});
  EXPECT_EQ(eval.data_dirs, std::vector<std::filesystem::path>{"/x"});
}

TEST(PictureConfig, MissingKeysAreNamed) {
  EXPECT_NE(fault_with({"train.dataset.data_dir=null"})
                .find("train.dataset.data_dir is missing: a folder with a sub-folder for each"),
            std::string::npos);
  EXPECT_NE(fault_with({"eval.dataset.held_out=0"})
                .find("eval.dataset.data_dir is missing: a folder, or `held_out` as `train` has"),
            std::string::npos);
  EXPECT_NE(fault_with({"eval.dataset={type: ImageListDataset}"})
                .find("eval.dataset.label_file is missing: a list of pictures and labels"),
            std::string::npos);
  EXPECT_NE(fault_with({"train.dataset.label_file=x.csv"})
                .find("label_file cannot be 'x.csv': the sub-folders are the labels"),
            std::string::npos);
  EXPECT_NE(
      fault_with({"train.dataset.type=ImageFolder"})
          .find(
              "MnistDataset, ImageFolderDataset, ImageListDataset, WebDataset, not 'ImageFolder'"),
      std::string::npos);
}

TEST(PictureConfig, SomethingIsLeftForTraining) {
  EXPECT_NE(fault_with({"train.dataset.held_out=1"}).find("held_out must be 0 or at least 2"),
            std::string::npos);
}

TEST(PictureConfig, AFolderThatIsDividedInTwoWaysIsNoted) {
  const auto note = [](const std::vector<std::string>& overrides) {
    return held_out_note(read_pictures(overrides));
  };
  EXPECT_EQ(note({"eval.dataset.held_out=5"}),
            "eval.dataset.held_out is 5 and train.dataset.held_out 10, of one folder: pictures of "
            "training are evaluated, too");
  const std::string same = "eval.dataset.data_dir=root/x/../photos";
  EXPECT_NE(note({same, "eval.dataset.held_out=0"}), "");
  EXPECT_EQ(note({same}), "");
  EXPECT_EQ(note({same, "eval.dataset.held_out=0", "eval.dataset.usage=all"}), "");
  EXPECT_EQ(note({same, "eval.dataset.held_out=0", "train.dataset.held_out=0"}), "");
  EXPECT_EQ(note({"eval.dataset.data_dir=val", "eval.dataset.held_out=0"}), "");
}

TEST(PictureConfig, ShardsAreAPattern) {
  const Config config =
      read_pictures({"train.dataset={type: WebDataset, dataset_root: r, shards: 't-{0..3}.tar'}",
                     "eval.dataset={type: WebDataset, shards: /v.tar}"});
  const auto& train = config.train.dataset;
  EXPECT_TRUE(train.has_picture_files());
  EXPECT_EQ(train.label_files, std::vector<std::filesystem::path>{"r/t-{0..3}.tar"});
  EXPECT_EQ(config.eval->dataset.label_files, std::vector<std::filesystem::path>{"/v.tar"});
  EXPECT_EQ(train.shuffle_buffer, 0);
  const auto buffered = [](const std::string& value) {
    return std::vector<std::string>{
        "train.dataset={type: WebDataset, shards: a.tar, shuffle_buffer: " + value + "}",
        "eval.dataset={type: WebDataset, shards: b.tar}"};
  };
  EXPECT_EQ(read_pictures(buffered("5000")).train.dataset.shuffle_buffer, 5000);
  EXPECT_NE(fault_with(buffered("-1")).find("shuffle_buffer must be a whole number from 0 to "),
            std::string::npos);
  EXPECT_NE(fault_with({"train.dataset.shuffle_buffer=5"}).find("'train.dataset.shuffle_buffer'"),
            std::string::npos)
      << "a folder has none";
  EXPECT_NE(fault_with({"train.dataset={type: WebDataset}"})
                .find("shards is missing: tar archives, such as train-{000..127}.tar"),
            std::string::npos);
  EXPECT_NE(fault_with({"train.dataset={type: WebDataset, shards: a.tar, data_dir: d}"})
                .find("WebDataset has its pictures and labels in `shards`"),
            std::string::npos);
}

TEST(PictureConfig, ASamplerBalancesClassesOfTraining) {
  EXPECT_FALSE(read_pictures().train.loader.balanced);
  EXPECT_TRUE(read_pictures({"train.loader.sampler=balanced"}).train.loader.balanced);
  EXPECT_FALSE(read_pictures({"train.loader.sampler=random"}).train.loader.balanced);
  const auto refused = [](const std::string& text, std::vector<std::string> overrides) {
    overrides.emplace_back("train.loader.sampler=balanced");
    return fault_in(text, overrides);
  };
  const std::vector<std::string> shards = {"train.dataset={type: WebDataset, shards: a.tar}",
                                           "eval.dataset={type: WebDataset, shards: b.tar}"};
  EXPECT_EQ(refused(kPictures, shards), "");
  EXPECT_NE(refused(kPictures, {shards[0], shards[1], "train.dataset.shuffle_buffer=9"})
                .find("train.loader.sampler cannot be balanced: dataset.shuffle_buffer makes the "
                      "order"),
            std::string::npos);
  EXPECT_NE(refused(kPictures, {"train.loader.shuffle=False"})
                .find("train.loader.sampler cannot be balanced: loader.shuffle is False"),
            std::string::npos);
  EXPECT_NE(refused(kDetector, {})
                .find("train.loader.sampler cannot be balanced: DetDataset has no classes"),
            std::string::npos);
  EXPECT_NE(fault_with({"eval.loader.sampler=balanced"})
                .find("eval.loader.sampler cannot be 'balanced': it is for training alone"),
            std::string::npos);
  EXPECT_NE(fault_with({"train.loader.sampler=weighted"})
                .find("train.loader.sampler must be one of random, balanced, not 'weighted'"),
            std::string::npos);
  EXPECT_NE(fault_with({"train.dataset.sampler=balanced"})
                .find("unknown key 'train.dataset.sampler', did you mean 'train.loader.sampler'?"),
            std::string::npos);
}

TEST(PictureConfig, SmallImagesHaveTheirOwnKeys) {
  const Config cifar = read_pictures(
      {"train.dataset={type: Cifar100Dataset, data_dir: d, labels: coarse}",
       "eval.dataset={type: Cifar100Dataset, labels: coarse}", "model.head.num_classes=20"});
  EXPECT_TRUE(cifar.train.dataset.coarse);
  EXPECT_EQ(cifar.train.dataset.channels, 0);
  EXPECT_EQ(cifar.eval->dataset.data_dirs, cifar.train.dataset.data_dirs);
  const Config mnist = read_pictures({"train.dataset={type: MnistDataset, data_dir: d}",
                                      "eval.dataset={type: MnistDataset, channels: 1}"});
  EXPECT_EQ(mnist.train.dataset.channels, 3);
  EXPECT_EQ(mnist.eval->dataset.channels, 1);
  const Config grey = read_pictures({"train.dataset={type: MnistDataset, data_dir: d, channels: 1}",
                                     "eval.dataset={type: MnistDataset}"});
  EXPECT_EQ(grey.eval->dataset.channels, 1) << "those of train";
  EXPECT_NE(fault_with({"train.dataset={type: FashionMnistDataset, data_dir: d, channels: 2}"})
                .find("channels must be one of 3, 1, not '2'"),
            std::string::npos);
  EXPECT_NE(fault_with({"train.dataset={type: Cifar100Dataset, data_dir: d, labels: courses}"})
                .find("did you mean 'coarse'?"),
            std::string::npos);
  EXPECT_NE(fault_with({"train.dataset={type: MnistDataset, data_dir: d, label_file: x}"})
                .find("MnistDataset has its labels in its files"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
