#include "lockstep/ocr/synth/write_synth.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <opencv2/imgcodecs.hpp>
#include <sstream>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

SynthOptions small(const fs::path& output) {
  SynthOptions options;
  options.output = output;
  options.det = 4;
  options.rec = 12;
  options.seed = 7;
  options.scene_size = {320, 240};
  return options;
}

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
    }
  }
  return files;
}

TEST(WriteSynth, NeitherThreadsNorCountsChangeAPicture) {
  const TempFolder folder;
  SynthOptions one = small(folder / "one"), three = small(folder / "three"),
               fewer = small(folder / "fewer");
  one.threads = 1;
  three.threads = 3;
  fewer.det = 2;
  fewer.rec = 0;
  EXPECT_EQ(write_synth(one).images, 4 + 1 + 12 + 2);
  write_synth(three);
  write_synth(fewer);
  const auto files = files_of(one.output);
  EXPECT_EQ(files, files_of(three.output));
  EXPECT_EQ(files.at("det/train/images/scene_000002.jpg"),
            files_of(fewer.output).at("det/train/images/scene_000002.jpg"));
  EXPECT_NE(files.at("rec/train/images/word_000001.jpg"),
            files.at("rec/test/images/word_000001.jpg"));
}

TEST(WriteSynth, LabelFilesNameEveryPicture) {
  const TempFolder folder;
  const SynthOptions options = small(folder / "data");
  write_synth(options);
  std::istringstream det(read_file(options.output / "det/train/det_gt.txt"));
  int scenes = 0;
  for (std::string line; std::getline(det, line); ++scenes) {
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos);
    const cv::Mat image =
        cv::imread((options.output / "det/train/images" / line.substr(0, tab)).string());
    EXPECT_EQ(image.size(), cv::Size(320, 240));
    const auto words = nlohmann::json::parse(line.substr(tab + 1));
    EXPECT_GE(words.size(), 1U);
    for (const auto& word : words) {
      EXPECT_EQ(word.at("points").size(), 4U);
      EXPECT_GE(word.at("transcription").get<std::string>().size(), 2U);
    }
  }
  EXPECT_EQ(scenes, 4);
  std::istringstream rec(read_file(options.output / "rec/test/rec_gt.txt"));
  int words = 0;
  for (std::string name, text; rec >> name >> text; ++words) {
    EXPECT_FALSE(cv::imread((options.output / "rec/test/images" / name).string()).empty());
  }
  EXPECT_EQ(words, 2);
}

TEST(WriteSynth, KeepsWhatEqualOptionsMadeAndRefusesTheRest) {
  const TempFolder folder;
  SynthOptions options = small(folder / "data");
  EXPECT_FALSE(write_synth(options).found);
  EXPECT_TRUE(write_synth(options).found);
  options.seed = 8;
  const Error error = error_of([&] { write_synth(options); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("made by other options"), std::string::npos);
}

TEST(WriteSynth, TakesAnyWayToWriteTheFolder) {
  const TempFolder folder;
  for (const char* name : {"data/", "./data//", "data/."}) {
    const SynthOptions options = small(folder / name);
    EXPECT_FALSE(write_synth(options).found) << name;
    EXPECT_TRUE(write_synth(options).found) << name;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << name;
    fs::remove_all(folder / "data");
  }
}

TEST(WriteSynth, BadOptionsLeaveNothing) {
  const TempFolder folder;
  const auto refused = [&](auto change, const std::string& text) {
    SynthOptions options = small(folder / "data");
    change(options);
    const Error error = error_of([&] { write_synth(options); });
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    EXPECT_TRUE(fs::is_empty(folder.path()));
  };
  refused([](SynthOptions& o) { o.det = o.rec = 0; }, "nothing to make");
  refused([](SynthOptions& o) { o.rec = -1; }, "--rec -1");
  refused([](SynthOptions& o) { o.test_share = 1.5; }, "--test_share 1.5");
  refused([](SynthOptions& o) { o.scene_size = {20, 640}; }, "20x640");
  refused([](SynthOptions& o) { o.difficulty = "herd"; }, "did you mean 'hard'");
  refused([](SynthOptions& o) { o.fonts = "/nonexistent"; }, "/nonexistent is no folder");
  refused([&](SynthOptions& o) { o.fonts = folder.path(); }, "no font");
}

TEST(WriteSynth, AFailureIsThrownAndTheHalfDoneFolderIsGone) {
  const TempFolder folder;
  SynthOptions options = small(folder / "data");
  options.threads = 2;
  const auto stop = [](int64_t done, int64_t) {
    if (done == 5) throw Error(ErrorCode::kIo, "full");
  };
  EXPECT_STREQ(error_of([&] { write_synth(options, stop); }).what(), "full");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace lockstep::ocr
