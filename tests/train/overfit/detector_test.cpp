#include "tests/train/overfit/overfit.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

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
