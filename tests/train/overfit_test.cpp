// Networks, losses, targets and metrics together: what a network has seen often enough, it knows.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "lockstep/base/file.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class Overfit : public ::testing::Test {
 protected:
  /// What `command` printed; the test fails when it does.
  std::string shell(const std::string& command) {
    const auto log = folder_ / "output";
    const std::string line =
        fmt::format("cd {} && export PATH={}:$PATH && {} >{} 2>&1", folder_.path().string(),
                    std::getenv("LOCKSTEP_BIN_DIR"), command, log.string());
    const int status = std::system(line.c_str());
    auto text = read_file(log, 1 << 24);
    EXPECT_EQ(WEXITSTATUS(status), 0) << command << "\n" << text;
    return text;
  }

  /// Trains and gives back the best value of the metric.
  double best_of(const std::string& config, const std::string& metric) {
    const auto text = shell(fmt::format("lockstep train -c {}/tests/train/overfit/{}",
                                        std::getenv("LOCKSTEP_SOURCE_DIR"), config));
    std::smatch match;
    const std::regex line(fmt::format("=> Best {}: ([0-9.]+) \n", metric));
    EXPECT_TRUE(std::regex_search(text, match, line)) << text;
    return match.empty() ? 0 : std::stod(match[1]);
  }

  TempFolder folder_;
};

/// Real pictures, where there are some, else an empty path.
fs::path real_data(const std::string& set) {
  const char* data = std::getenv("LOCKSTEP_TEST_DATA");
  const auto folder = data == nullptr ? fs::path() : fs::path(data) / set;
  return fs::exists(folder / "train.zip") ? folder : fs::path();
}

TEST_F(Overfit, ADetectorFindsTheTextsOfFourScenes) {
  const auto real = real_data("ocr_det");
  fs::create_directories(folder_ / "det/images");
  if (real.empty()) {
    shell("lockstep data synth-ocr --det 4 --rec 1 --size 384x224 --difficulty easy -o drawn");
    fs::rename(folder_ / "drawn/det/train/images", folder_ / "det/images");
    fs::rename(folder_ / "drawn/det/train/det_gt.txt", folder_ / "det/det_gt.txt");
  } else {
    shell(fmt::format("cmake -E tar xf {}", (real / "train.zip").string()));
    fs::create_directories(folder_ / "labels");
    for (const int number : {145, 153, 225, 229}) {
      const auto image = fmt::format("img_{}.jpg", number);
      const auto label = fmt::format("gt_img_{}.txt", number);
      fs::rename(folder_ / "train_images" / image, folder_ / "det/images" / image);
      fs::rename(folder_ / "train_gts" / label, folder_ / "labels" / label);
    }
    shell("lockstep convert -d ic15 -t det -i det/images -l labels -o det/det_gt.txt");
  }
  EXPECT_GE(best_of("det.yaml", "f-score"), 0.9);
}

}  // namespace
}  // namespace lockstep
