// The real program, with networks that see text everywhere and read "q" in all of it.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <opencv2/imgcodecs.hpp>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/train/setup.h"
#include "tests/predict/configs.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The last layer of a head gives `bias`, whatever it sees.
void fix_output(Model& model, const std::string& layer, const std::vector<float>& bias) {
  const at::NoGradGuard no_grad;
  auto parameters = model.named_parameters();
  parameters[layer + ".weight"].zero_();
  parameters[layer + ".bias"].copy_(at::tensor(bias));
}

/// A folder with configurations, weights and pictures; the program runs in it.
class PredictProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    write_file_atomically(*folder_ / "det.yaml", testing::det_yaml());
    write_file_atomically(*folder_ / "rec.yaml", testing::rec_yaml());
    auto detector = make_model(load_config(*folder_ / "det.yaml").model, 1);
    fix_output(*detector, "head.segm.6", {4});
    save_ckpt(*folder_ / "det.ckpt", *detector);
    auto recogniser = make_model(load_config(*folder_ / "rec.yaml").model, 1);
    std::vector<float> q(37);
    q[26] = 5;  // 0-9, then a-z
    fix_output(*recogniser, "head.dense1", q);
    save_ckpt(*folder_ / "rec.ckpt", *recogniser);

    fs::create_directories(*folder_ / "pictures/sub");
    save("pictures/a.png", 80, 48);
    save("pictures/b.jpg", 60, 100);
    save("pictures/sub/a.png", 96, 64);
    write_file_atomically(*folder_ / "pictures/broken.jpg", std::string_view("no picture"));
    fs::create_directories(*folder_ / "bad");
    write_file_atomically(*folder_ / "bad/broken.png", std::string_view("no picture"));
    fs::create_symlink("/proc/self/mem", *folder_ / "bad/unreadable.png");  // reading it fails
  }
  static void TearDownTestSuite() { delete folder_; }

  static void save(const std::string& path, int width, int height) {
    cv::imwrite((*folder_ / path).string(),
                cv::Mat(height, width, CV_8UC3, cv::Scalar(9, 99, 200)));
  }

  /// Exit status; standard error is in stderr.txt.
  static int predict(const std::string& args, int ranks = 1) {
    const std::string bin = std::getenv("LOCKSTEP_BIN_DIR");
    const std::string launcher =
        ranks == 1 ? "" : " run --nproc_per_node " + std::to_string(ranks) + " -- lockstep";
    const std::string line = "cd " + folder_->path().string() + " && PATH=" + bin +
                             ":$PATH OMP_NUM_THREADS=1 timeout 100 lockstep" + launcher +
                             " predict " + args + " >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string text_of(const std::string& file) { return read_file(*folder_ / file); }
  static size_t count_in(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }

  static TempFolder* folder_;
};
TempFolder* PredictProgram::folder_ = nullptr;

constexpr auto kSystemLines =
    "a.png\t[{\"transcription\": \"q\", \"points\": [[0, 0], [79, 0], [79, 47], [0, 47]]}]\n"
    "b.jpg\t[{\"transcription\": \"q\", \"points\": [[0, 0], [59, 0], [59, 99], [0, 99]]}]\n"
    "a.png\t[{\"transcription\": \"q\", \"points\": [[0, 0], [95, 0], [95, 63], [0, 63]]}]\n";

TEST_F(PredictProgram, DetectsAndDrawsAndPassesOverABadPicture) {
  ASSERT_EQ(predict("-c det.yaml --det det.ckpt --input pictures --output found"), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("found/det_results.txt"),
            "a.png\t[[[0, 0], [79, 0], [79, 47], [0, 47]]]\n"
            "b.jpg\t[[[0, 0], [59, 0], [59, 99], [0, 99]]]\n"
            "a.png\t[[[0, 0], [95, 0], [95, 63], [0, 63]]]\n");
  const std::string said = text_of("stderr.txt");
  EXPECT_EQ(count_in(said, "broken.jpg"), 1U) << said;
  EXPECT_EQ(count_in(said, "3 pictures in found/det_results.txt; 1 could not be used"), 1U) << said;

  const cv::Mat drawn = cv::imread((*folder_ / "found/b_det_res.png").string());
  ASSERT_EQ(drawn.size(), cv::Size(60, 100));
  EXPECT_GT(drawn.at<cv::Vec3b>(50, 0)[2], 240);  // the outline
  EXPECT_NEAR(drawn.at<cv::Vec3b>(50, 30)[2], 200, 4);
  EXPECT_NEAR(drawn.at<cv::Vec3b>(50, 30)[0], 9, 4);
  EXPECT_TRUE(fs::exists(*folder_ / "found/a_png_det_res.png"));
  EXPECT_TRUE(fs::exists(*folder_ / "found/sub_a_png_det_res.png"));
}

TEST_F(PredictProgram, OneAndThreeRanksWriteTheSameResults) {
  const std::string args =
      "-c det.yaml --det det.ckpt --rec rec.yaml rec.ckpt --input pictures --output ";
  ASSERT_EQ(predict(args + "one"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("one/system_results.txt"), kSystemLines);
  ASSERT_EQ(predict(args + "three", 3), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("three/system_results.txt"), kSystemLines);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "broken.jpg"), 1U) << text_of("stderr.txt");
  EXPECT_EQ(text_of("one/b_res.png"), text_of("three/b_res.png"));
}

TEST_F(PredictProgram, ReadsWordsAndDropsTextBelowAConfidence) {
  ASSERT_EQ(predict("-c rec.yaml --rec rec.ckpt --input pictures/a.png --output words"), 0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("words/rec_results.txt"), "a.png\tq\n");
  ASSERT_EQ(predict("--det det.yaml det.ckpt --rec rec.yaml rec.ckpt --drop_score 0.9 "
                    "--input pictures/a.png --output sure"),
            0)
      << text_of("stderr.txt");
  EXPECT_EQ(text_of("sure/system_results.txt"), "a.png\t[]\n");
}

TEST_F(PredictProgram, BothResultFilesLeaveOutARegionWithoutAnArea) {
  save("dot.png", 2, 1);  // all of whose corners lie in one row
  const std::string args = "-c det.yaml --det det.ckpt --input dot.png --output dot";
  ASSERT_EQ(predict(args), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("dot/det_results.txt"), "dot.png\t[]\n");
  ASSERT_EQ(predict(args + " --rec rec.yaml rec.ckpt"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("dot/system_results.txt"), "dot.png\t[]\n");
}

TEST_F(PredictProgram, SaysWhatIsWrongInOneLineAndWritesNothing) {
  EXPECT_EQ(predict("-c det.yaml --det det.ckpt --input bad --output nothing"), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "none of the 2 pictures of bad could be used"), 1U);
  EXPECT_FALSE(fs::exists(*folder_ / "nothing/det_results.txt"));
  EXPECT_EQ(predict("-c det.yaml --det rec.ckpt --input pictures --output nothing"), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "rec.ckpt"), 1U) << text_of("stderr.txt");
  EXPECT_EQ(predict("-c det.yaml --det det.ckpt --input none --output nothing"), 2);
  EXPECT_EQ(count_in(text_of("stderr.txt"), "none does not exist"), 1U);
}

}  // namespace
}  // namespace lockstep
