#include "tests/train/overfit/overfit.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Real scenes have small and slanted texts and other objects: larger pictures, more epochs.
constexpr char kLonger[] =
    "scheduler.scheduler=constant scheduler.lr=0.001 scheduler.num_epochs=180 train.max_steps=0 "
    "system.val_start_epoch=140 system.val_interval=20";

TEST_F(Overfit, ADetectorFindsTheTextsOfFourScenes) {
  const auto real = real_data("ocr_det");
  fs::create_directories(folder_ / "det/images");
  if (real.empty()) {
    shell("lockstep data synth-ocr --det 4 --rec 1 --size 160x160 --difficulty easy -o drawn");
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
  const std::string text =
      std::regex_replace(read_file(config_file("det.yaml"), 1 << 16), std::regex("SIZE"),
                         real.empty() ? "[160, 160]" : "[224, 384]");
  write_file_atomically(folder_ / "det.yaml", text);
  EXPECT_GE(best_of(folder_ / "det.yaml", "f-score", real.empty() ? "" : kLonger), 0.9);
}

}  // namespace
}  // namespace lockstep
