// The real programs with text that they drew themselves: training, evaluation, ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "lockstep/base/file.h"
#include "lockstep/ocr/data/regions.h"
#include "tests/ocr/data/write_mat.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string bin_dir() {
  return std::getenv("LOCKSTEP_BIN_DIR");
}

fs::path source_dir() {
  return std::getenv("LOCKSTEP_SOURCE_DIR");
}

/// A folder with pictures; programs run in it.
class TextTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    shell("lockstep data synth-ocr --det 8 --rec 16 --size 160x160 -o data");
  }

  /// The output of `command`; a failure fails the test.
  std::string shell(const std::string& command) {
    const auto log = folder_ / "output";
    const std::string line = fmt::format("cd {} && export PATH={}:$PATH && {} >{} 2>&1",
                                         folder_.path().string(), bin_dir(), command, log.string());
    const int status = std::system(line.c_str());
    auto text = read_file(log, 1 << 24);
    EXPECT_EQ(WEXITSTATUS(status), 0) << command << "\n" << text;
    return text;
  }

  /// The weights and figures that a run's `ranks` ranks print at its end.
  struct Ending {
    std::string weights;
    std::string figures;
  };
  Ending train(const std::string& config, int ranks, const std::string& options) {
    const auto text = shell(
        fmt::format("lockstep run --nproc_per_node {0} -- lockstep train -c {1} -o "
                    "parallel.virtual_ranks=4 parallel.threads=1 train.ckpt_save_dir=out_{0} "
                    "train.dataset.dataset_root=data eval.dataset.dataset_root=data "
                    "train.loader.batch_size=1 train.max_steps=2 system.val_start_epoch=1 {2}",
                    ranks, (source_dir() / "configs" / config).string(), options));
    const auto find = [&](const std::string& pattern) {
      std::smatch match;
      return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : text;
    };
    return {find("Weights: ([0-9a-f]{16}) on"), find("Performance: (\\{.*\\}), eval time")};
  }

  /// Trains with a transform of a shared library: its setting shows, ranks and workers do not.
  /// `pipeline`: the items of `train`, with OWN in the place of that transform.
  void expect_setting_alone_shows(const std::string& config, const std::string& network,
                                  const std::string& pipeline) {
    const auto ending = [&](int most, int ranks, int workers) {
      std::string items = pipeline;
      items.replace(items.find("OWN"), 3, fmt::format("{{RandomSpeckle: {{most: {}}}}}", most));
      return train(config, ranks,
                   fmt::format("{} train.loader.num_workers={} train.ckpt_save_dir=out_{}_{}_{} "
                               "train.dataset.transform_pipeline='[{}]' "
                               "--plugin {}/lockstep_own_transforms.so",
                               network, workers, most, ranks, workers, items, bin_dir()));
    };
    const auto expected = ending(60, 1, 1);
    EXPECT_EQ(expected.weights.size(), 16u);
    for (const int ranks : {1, 2}) {
      const auto other = ending(60, ranks, 3);
      EXPECT_EQ(other.weights, expected.weights) << ranks << " ranks, 3 workers each";
      EXPECT_EQ(other.figures, expected.figures) << ranks << " ranks, 3 workers each";
    }
    EXPECT_NE(ending(1, 1, 1).weights, expected.weights) << "the setting counts";
  }

  TempFolder folder_;
};

TEST_F(TextTraining, ADetectorHasTheSameBitsOnOneTwoAndFourRanks) {
  const std::string options =
      "model.neck.out_channels=32 train.dataset.transform_pipeline='[{DecodeImage: {img_mode: "
      "RGB}}, {DetLabelEncode: }, {RandomHorizontalFlip: {p: 0.5}}, {RandomCropWithBBox: "
      "{crop_size: [64, 64], p: 1.0}}, {ValidatePolygons: }, {ShrinkBinaryMap: {min_text_size: "
      "3}}, "
      "{BorderMap: }, {NormalizeImage: {mean: imagenet, std: imagenet}}, {ToCHWImage: }]'";
  const auto one = train("det/dbnet/db_r18_synth.yaml", 1, options);
  EXPECT_EQ(one.weights.size(), 16u);
  EXPECT_NE(one.figures.find("'f-score'"), std::string::npos) << one.figures;
  for (const int ranks : {2, 4}) {
    const auto other = train("det/dbnet/db_r18_synth.yaml", ranks, options);
    EXPECT_EQ(other.weights, one.weights) << ranks << " ranks";
    EXPECT_EQ(other.figures, one.figures) << ranks << " ranks";
  }
  for (const char* file :
       {"train_config.yaml", "args.yaml", "log_0.txt", "log_3.txt", "best.ckpt", "result.svg"}) {
    EXPECT_TRUE(fs::exists(folder_ / "out_4" / file)) << file;
  }
}

TEST_F(TextTraining, ARecogniserHasTheSameBitsOnOneTwoAndFourRanks) {
  const auto one = train("rec/crnn/crnn_vgg7_synth.yaml", 1, "model.neck.hidden_size=16");
  EXPECT_EQ(one.weights.size(), 16u);
  EXPECT_NE(one.figures.find("'norm_edit_distance'"), std::string::npos) << one.figures;
  for (const int ranks : {2, 4}) {
    const auto other = train("rec/crnn/crnn_vgg7_synth.yaml", ranks, "model.neck.hidden_size=16");
    EXPECT_EQ(other.weights, one.weights) << ranks << " ranks";
    EXPECT_EQ(other.figures, one.figures) << ranks << " ranks";
  }
}

TEST_F(TextTraining, OwnTransformsOfADetectorShowNeitherRanksNorWorkers) {
  expect_setting_alone_shows(
      "det/dbnet/db_r18_synth.yaml", "model.neck.out_channels=32",
      "{DecodeImage: {img_mode: RGB}}, OWN, {DetLabelEncode: }, {RandomCropWithBBox: {crop_size: "
      "[64, 64], p: 1.0}}, {ValidatePolygons: }, {ShrinkBinaryMap: {min_text_size: 3}}, "
      "{BorderMap: }, {NormalizeImage: }, {ToCHWImage: }");
}

TEST_F(TextTraining, OwnTransformsOfARecogniserShowNeitherRanksNorWorkers) {
  expect_setting_alone_shows(
      "rec/crnn/crnn_vgg7_synth.yaml", "model.neck.hidden_size=16",
      "{DecodeImage: }, {RecCTCLabelEncode: }, OWN, {RecResizeImg: {image_shape: [32, 100], "
      "padding: False}}, {NormalizeImage: {bgr_to_rgb: True, mean: [127, 127, 127], std: [127, "
      "127, 127]}}, {ToCHWImage: }");
}

TEST_F(TextTraining, OwnTransformsAreTriedBeforeTraining) {
  const auto checked = [&](const std::string& item) {
    return shell(fmt::format(
        "! lockstep train --check -c {} --plugin {}/lockstep_own_transforms.so -o "
        "train.dataset.dataset_root=data eval.dataset.dataset_root=data "
        "train.dataset.transform_pipeline='[{{DecodeImage: }}, {{RecCTCLabelEncode: }}, {{{}: }}, "
        "{{RecResizeImg: {{image_shape: [32, 100]}}}}, {{NormalizeImage: }}, {{ToCHWImage: }}]'",
        (source_dir() / "configs/rec/crnn/crnn_vgg7_synth.yaml").string(), bin_dir(), item));
  };
  const auto broken = checked("Broken");
  EXPECT_TRUE(std::regex_match(
      broken, std::regex("lockstep train: error: [^\n]*: train\\.dataset\\.transform_pipeline: "
                         "[^\n]*word_[0-9]*\\.[a-z]*\\): the transform Broken failed: no such "
                         "row\n")))
      << broken;
  const auto refusing = checked("Refusing");
  EXPECT_TRUE(std::regex_match(
      refusing,
      std::regex(
          "lockstep train: error: [^\n]*: train\\.dataset\\.transform_pipeline: sample 0 "
          "cannot be used: [^\n]*word_[0-9]*\\.[a-z]*\\): Refusing: it never fits; nor could "
          "10 others, drawn in its place\n")))
      << refusing;
  const auto halving = checked("Halving");
  EXPECT_NE(halving.find(": only pictures of a classifier may change their size\n"),
            std::string::npos)
      << halving;
}

/// Converts the scenes of a MindOCR label file to SynthText's format.
void write_synth_text(const fs::path& label_file, const fs::path& mat) {
  std::vector<matvar_t*> names, words, boxes;
  std::istringstream lines(read_file(label_file));
  for (std::string line; std::getline(lines, line);) {
    const auto tab = line.find('\t');
    std::string texts;
    std::vector<float> numbers;
    for (const auto& region : ocr::parse_regions(line.substr(tab + 1))) {
      ASSERT_EQ(region.polygon.size(), 4u) << line;
      texts += texts.empty() ? "word" : " word";
      for (const auto& corner : region.polygon) {
        numbers.insert(numbers.end(), {corner.x, corner.y});
      }
    }
    names.push_back(testing::text({line.substr(0, tab)}));
    words.push_back(testing::text({texts}));
    boxes.push_back(testing::boxes(numbers));
  }
  testing::write_mat(mat, {{"imnames", names}, {"wordBB", boxes}, {"txt", words}});
}

TEST_F(TextTraining, SynthTextTrains) {
  write_synth_text(folder_ / "data/det/train/det_gt.txt", folder_ / "data/gt.mat");
  const auto text = shell(fmt::format(
      "lockstep train -c {} -o parallel.threads=1 train.dataset.dataset_root=data "
      "train.dataset.data_dir=det/train/images train.dataset.label_file=gt.mat "
      "train.loader.batch_size=2 train.loader.num_workers=2 train.max_steps=2 "
      "train.dataset_sink_mode=False system.log_interval=1 train.ckpt_save_dir=out "
      "model.backbone.pretrained=False model.neck.out_channels=32 "
      "train.dataset.transform_pipeline='[{{DecodeImage: {{img_mode: RGB}}}}, "
      "{{RandomCropWithBBox: {{crop_size: [64, 64], p: 1.0}}}}, {{ValidatePolygons: }}, "
      "{{ShrinkBinaryMap: {{min_text_size: 3}}}}, {{BorderMap: }}, {{NormalizeImage: }}, "
      "{{ToCHWImage: }}]'",
      (source_dir() / "configs/det/dbnet/db_r18_synthtext.yaml").string()));
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(step: \[2/4\], loss: \d)"))) << text;
  EXPECT_TRUE(fs::exists(folder_ / "out/train_config.yaml"));
}

TEST_F(TextTraining, ABadPictureCostsAWarningAndThatSampleOnly) {
  write_file_atomically(folder_ / "data/rec/train/images/word_000003.jpg", "no picture");
  const auto text = shell(fmt::format(
      "lockstep train -c {} -o parallel.threads=1 train.dataset.dataset_root=data "
      "eval.dataset.dataset_root=data train.loader.batch_size=2 model.neck.hidden_size=16 "
      "scheduler.num_epochs=1 system.val_while_train=False system.amp_level=O3",
      (source_dir() / "configs/rec/crnn/crnn_vgg7_synth.yaml").string()));
  EXPECT_NE(text.find("word_000003.jpg"), std::string::npos) << text;
  EXPECT_NE(text.find("stands in its place"), std::string::npos) << text;
  EXPECT_NE(text.find("1 sample could not be used"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
