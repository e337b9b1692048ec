#include "lockstep/ocr/convert/convert.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/ocr/data/lmdb_file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

/// Two pictures with labels in the form of ICDAR 2015.
class ConvertTest : public ::testing::Test {
 protected:
  ConvertTest() {
    fs::create_directories(dir_ / "images");
    fs::create_directories(dir_ / "gt");
    for (const char* name : {"img_2", "img_10"}) {
      write_file_atomically(dir_ / "images" / (std::string(name) + ".jpg"), "jpeg");
      write_file_atomically(dir_ / "gt" / ("gt_" + std::string(name) + ".txt"),
                            "0,0,9,0,9,5,0,5," + std::string(name) + "\n");
    }
    options_.image_dir = (dir_ / "images").string();
    options_.label_dir = (dir_ / "gt").string();
  }

  Error refused() {
    return error_of([&] { convert_labels(options_); });
  }

  TempFolder dir_;
  ConvertOptions options_;
};

TEST_F(ConvertTest, LabelFilesInTheOrderOfTheirNames) {
  const ConvertResult result = convert_labels(options_);
  EXPECT_EQ(result.output, (dir_ / "images_det_gt.txt").string());
  EXPECT_EQ(result.images, 2);
  const std::string points = "\"points\": [[0, 0], [9, 0], [9, 5], [0, 5]]}]\n";
  EXPECT_EQ(read_file(result.output), "img_10.jpg\t[{\"transcription\": \"img_10\", " + points +
                                          "img_2.jpg\t[{\"transcription\": \"img_2\", " + points);
  options_.path_mode = "abs";
  options_.output_path = (dir_ / "abs.txt").string();
  convert_labels(options_);
  EXPECT_TRUE(read_file(options_.output_path).starts_with((dir_ / "images/img_10.jpg\t").string()));
}

TEST_F(ConvertTest, WordsAsTextAndAsLmdb) {
  write_file_atomically(dir_ / "words.txt", "img_2.jpg, \"a, b\"\nimg_10.jpg, \"É\"\n");
  options_.label_dir = (dir_ / "words.txt").string();
  options_.task = "rec";
  EXPECT_EQ(read_file(convert_labels(options_).output), "img_2.jpg\ta, b\nimg_10.jpg\tÉ\n");
  options_.task = "rec_lmdb";
  for (const char* labels : {"words.txt", "images_rec_gt.txt"}) {
    options_.label_dir = (dir_ / labels).string();
    options_.output_path = (dir_ / "lmdb-of-").string() + labels;
    const LmdbFile lmdb(convert_labels(options_).output);
    EXPECT_EQ(lmdb.get("num-samples"), "2");
    EXPECT_EQ(lmdb.get("label-000000001"), "a, b");
    EXPECT_EQ(lmdb.get("label-000000002"), "É");
    EXPECT_EQ(lmdb.get("image-000000002"), "jpeg");
    EXPECT_EQ(lmdb.num_entries(), 5);
  }
  EXPECT_NE(std::string(refused().what()).find("is there already"), std::string::npos);
  options_.output_path = (dir_ / "slash/").string();
  EXPECT_EQ(LmdbFile(convert_labels(options_).output).get("num-samples"), "2");
  EXPECT_TRUE(fs::exists(dir_ / "slash/data.mdb"));
}

TEST_F(ConvertTest, WhatCannotBeConvertedIsNamedAndNothingIsWritten) {
  fs::remove(dir_ / "images/img_2.jpg");
  EXPECT_EQ(refused().code(), ErrorCode::kNotFound);
  EXPECT_EQ(refused().what(), (dir_ / "images/img_2.jpg").string() + ": no such picture, but " +
                                  (dir_ / "gt/gt_img_2.txt").string() + " has labels for it");
  EXPECT_FALSE(fs::exists(default_output(options_)));
  const auto text = [&](auto change) {
    const ConvertOptions before = options_;
    change(options_);
    std::string what = refused().what();
    options_ = before;
    return what;
  };
  using Options = ConvertOptions;
  EXPECT_EQ(
      text([](Options& o) { o.dataset_name = "ic51"; }),
      "--dataset_name ic51: unknown, did you mean 'ic15'?; for task det: casia10k, borndigital, "
      "ic15, totaltext, lsvt, mlt2017, mlt2019, mtwi2018, sroie, syntext150k, td500, ctw1500, ctw, "
      "textocr, rctw17, rects, ic19_art, cocotext");
  EXPECT_EQ(text([](Options& o) { o.dataset_name = "cocotext"; }),
            "--split is missing: train, val or test of cocotext");
  EXPECT_TRUE(text([](Options& o) {
                o.dataset_name = "svt";
              }).starts_with("--dataset_name svt: not converted here; for task det: "));
  EXPECT_EQ(text([](Options& o) { o.task = "rec_lmbd"; }),
            "--task rec_lmbd: unknown, did you mean 'rec_lmdb'? (known: det, rec, rec_lmdb)");
  EXPECT_NE(text([](Options& o) { o.path_mode = "x"; }).find("relative or abs"), std::string::npos);
  EXPECT_NE(text([](Options& o) { o.split = "train"; }).find("--split train"), std::string::npos);
  EXPECT_NE(text([](Options& o) { o.label_dir = ""; }).find("--label_dir"), std::string::npos);
  EXPECT_EQ(text([](Options& o) { o.label_dir = "/none"; }),
            "/none: no such folder or file of labels");
}

TEST_F(ConvertTest, PicturesThatOneFileNames) {
  const std::string words =
      R"([{"transcription": "a", "points": [[0, 0], [9, 0], [9, 5], [0, 5]], "illegibility": false,
           "language": "Latin"}])";
  write_file_atomically(dir_ / "all.json",
                        R"({"img_10": )" + words + R"(, "img_2": )" + words + "}");
  options_.label_dir = (dir_ / "all.json").string();
  options_.dataset_name = "ic19_art";
  const std::string label =
      R"([{"language": "Latin", "transcription": "a", "points": [[0, 0], [9, 0], [9, 5], [0, 5]]}])";
  EXPECT_EQ(read_file(convert_labels(options_).output),
            "img_2.jpg\t" + label + "\nimg_10.jpg\t" + label + "\n");
  write_file_atomically(dir_ / "all.json", R"({"img_10": []})");
  EXPECT_EQ(refused().what(), options_.label_dir + ": no labels for img_2.jpg");

  write_file_atomically(dir_ / "all.json",
                        R"({"file_name": "img_2.jpg", "annotations": [], "ignore": []})");
  options_.dataset_name = "ctw";
  EXPECT_EQ(read_file(convert_labels(options_).output), "img_2.jpg\t[]\n");
  write_file_atomically(dir_ / "all.json",
                        R"({"file_name": "none.jpg", "annotations": [], "ignore": []})");
  EXPECT_EQ(refused().code(), ErrorCode::kNotFound);
}

TEST_F(ConvertTest, ReceiptsWithoutPictureAndCopiesAreLeftOut) {
  for (const char* name : {"X1", "X2", "X00016469622(1)"}) {  // the last: 19 letters with .jpg
    write_file_atomically(dir_ / "gt" / (std::string(name) + ".txt"), "0,0,9,0,9,5,0,5,***\n\n");
    if (name != std::string("X2"))
      write_file_atomically(dir_ / "images" / (std::string(name) + ".jpg"), "");
  }
  for (const char* name : {"gt_img_2", "gt_img_10"}) {
    fs::remove(dir_ / "gt" / (std::string(name) + ".txt"));
  }
  options_.dataset_name = "sroie";
  const auto result = convert_labels(options_);
  EXPECT_EQ(
      read_file(result.output),
      "X1.jpg\t[{\"transcription\": \"###\", \"points\": [[0, 0], [9, 0], [9, 5], [0, 5]]}]\n");
  EXPECT_EQ(result.notes.size(), 2U);
}

TEST(DefaultOutput, AsMindOcrHasIt) {
  EXPECT_EQ(default_output({"ic15", "det", "a/images", "a/b/gt", "", "relative", ""}),
            "a/b/images_det_gt.txt");
  EXPECT_EQ(default_output({"ic15", "det", "a/images/", "gt", "", "relative", ""}), "_det_gt.txt");
  EXPECT_EQ(default_output({"ic15", "rec", "images", "a/gt/", "", "relative", ""}),
            "a/gt/images_rec_gt.txt");
}

TEST_F(ConvertTest, TheProgramSaysWhereTheResultIs) {
  const std::string command =
      fmt::format("{}/lockstep-convert --task det --image_dir {} --label_dir {} 2>&1",
                  env_or("LOCKSTEP_BIN_DIR", "."), options_.image_dir, options_.label_dir);
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  const size_t got = ::fread(buffer.data(), 1, buffer.size(), pipe);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_EQ(std::string(buffer.data(), got), "Conversion complete.\nResult saved in " +
                                                 (dir_ / "images_det_gt.txt").string() + "\n");
}

}  // namespace
}  // namespace lockstep::ocr
