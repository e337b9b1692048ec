#include "lockstep/train/config/weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() {
    fs::create_directories(dir_ / "weights");
    setenv("LOCKSTEP_CACHE", dir_.c_str(), 1);
    setenv("HOME", dir_.c_str(), 1);
  }
  ~WeightsTest() override {
    unsetenv("LOCKSTEP_CACHE");
    home_ == nullptr ? unsetenv("HOME") : setenv("HOME", saved_home_.c_str(), 1);
    fs::remove_all(dir_);
  }
  void put(const fs::path& file) const {
    fs::create_directories((dir_ / file).parent_path());
    std::ofstream(dir_ / file) << "w";
  }

  const fs::path dir_ = fs::path(::testing::TempDir()) / ("weights_" + std::to_string(getpid()));
  const char* home_ = std::getenv("HOME");
  const std::string saved_home_ = home_ == nullptr ? "" : home_;
};

constexpr auto kAddress = "https://host/a/b/net-1.ckpt";

TEST_F(WeightsTest, APathIsItself) {
  EXPECT_EQ(weights_path("some/net.ckpt"), "some/net.ckpt");
}

TEST_F(WeightsTest, AnAddressIsAFileOfTheCache) {
  EXPECT_EQ(weights_path(kAddress), dir_ / "weights/net-1.ckpt");
  put(".mindspore/models/net-1.ckpt");
  EXPECT_EQ(weights_path(kAddress), dir_ / ".mindspore/models/net-1.ckpt");
  put("weights/net-1.safetensors");
  EXPECT_EQ(weights_path(kAddress), dir_ / "weights/net-1.safetensors");
  put("weights/net-1.ckpt");
  EXPECT_EQ(require_weights(kAddress), dir_ / "weights/net-1.ckpt");
}

TEST_F(WeightsTest, WhatIsMissingIsSaidWithItsPlace) {
  try {
    require_weights(kAddress);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(
        std::string(error.what()),
        std::string("the weights https://host/a/b/net-1.ckpt are not here: download that file "
                    "and put it at ") +
            (dir_ / "weights/net-1.ckpt").string());
  }
  Config config;
  EXPECT_TRUE(missing_weights(config).empty());
  config.model.pretrained = "gone.ckpt";
  EXPECT_EQ(missing_weights(config),
            std::vector<std::string>{"model.pretrained: the weights gone.ckpt are not there"});
  EXPECT_EQ(describe(find_missing(config).at(0), ""),
            "model.pretrained: the weights gone.ckpt are not there; -o model.pretrained=False "
            "starts without");
  config.model.pretrained = kAddress;
  const std::string downloads =
      "the weights https://host/a/b/net-1.ckpt are not here: a run downloads them to " +
      (dir_ / "weights/net-1.ckpt").string();
  EXPECT_EQ(missing_weights(config).at(0), "model.pretrained: " + downloads);
  DistillationConfig distillation;
  distillation.teacher.pretrained = kAddress;
  config.loss = distillation;
  EXPECT_EQ(missing_weights(config).at(1), "loss.teacher.pretrained: " + downloads);
}

std::string content_of(const fs::path& path) {
  return read_file(path);
}

TEST(ClassNamesFile, OfOtherLinesIsNotLost) {
  const TempFolder dir;
  const auto file = dir / "classes.txt";
  EXPECT_EQ(write_class_names(dir.path(), {"cat", "dog"}), "");
  EXPECT_EQ(content_of(file), "cat\ndog\n");
  write_file_atomically(file, std::string_view("Katze\nHund\n"));  // by its user
  EXPECT_EQ(write_class_names(dir.path(), {"cat", "dog"}), dir / "classes.txt.1");
  EXPECT_EQ(content_of(dir / "classes.txt.1"), "Katze\nHund\n");
  EXPECT_EQ(content_of(file), "cat\ndog\n");
  EXPECT_EQ(write_class_names(dir.path(), {"cat", "dog", "ant"}), dir / "classes.txt.2");
  EXPECT_EQ(content_of(dir / "classes.txt.2"), "cat\ndog\n");
  EXPECT_EQ(content_of(file), "cat\ndog\nant\n");
}

TEST(ClassNamesFile, OfTheSameLinesStaysAsItIs) {
  const TempFolder dir;
  const auto file = dir / "classes.txt";
  for (const std::string text :
       {"cat\ndog", "cat\r\ndog\r\n", "cat\ndog\n\n", "cat\ndog\r\n\r\n"}) {
    write_file_atomically(file, text);
    check_class_names(dir.path(), {"cat", "dog"});
    EXPECT_EQ(write_class_names(dir.path(), {"cat", "dog"}), "");
    EXPECT_EQ(content_of(file), text);
    EXPECT_EQ(trained_class_names(dir / "best.ckpt"), (std::vector<std::string>{"cat", "dog"}));
  }
}

TEST(ClassNamesFile, IsNotedWhereANameHasTwoLines) {
  EXPECT_EQ(unwritten_names_note("out/", {"cat", "dog"}), "");
  EXPECT_EQ(unwritten_names_note("out/", {}), "");
  EXPECT_EQ(
      unwritten_names_note("out/", {"cat", "a\nb"}),
      "out/classes.txt is not written: the name of class 'a?b' has a line's end; predict takes "
      "the names from the training data, or numbers where these are not");
}

TEST(ClassNamesFile, OfNoRunIsRefusedWhereARunWouldWriteIt) {
  const TempFolder dir;
  check_class_names(dir / "none", {"cat"});
  write_file_atomically(dir / "classes.txt", std::string_view("mine\n"));
  for (const std::vector<std::string>& unused : {std::vector<std::string>{}, {"two\nlines"}}) {
    check_class_names(dir.path(), unused);
    EXPECT_EQ(write_class_names(dir.path(), unused), "");
  }
  try {
    check_class_names(dir.path(), {"cat"});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(std::string(error.what()),
              "train.ckpt_save_dir " + dir.path().string() +
                  ": a run writes the names of its classes to " + (dir / "classes.txt").string() +
                  ", which has other lines and is of no run; move it away, or choose another "
                  "folder");
  }
  EXPECT_EQ(content_of(dir / "classes.txt"), "mine\n");
  write_file_atomically(dir / "args.yaml", std::string_view("{}"));  // a run began here
  check_class_names(dir.path(), {"cat"});
}

TEST(Weights, TrueIsAnAddress) {
  BackboneConfig backbone;
  EXPECT_EQ(known_weights(backbone), "");
  backbone.name = "det_resnet18";
  EXPECT_TRUE(known_weights(backbone).ends_with("/resnet18-1e65cd21.ckpt"));
  backbone.name = "det_mobilenet_v3";
  EXPECT_TRUE(known_weights(backbone).ends_with("/mobilenet_v3_large_100-6f5bf961.ckpt"));
  backbone.alpha = 0.5;
  EXPECT_EQ(known_weights(backbone), "");
}

}  // namespace
}  // namespace lockstep
