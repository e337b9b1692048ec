// Reads every configuration of the project.

#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/train/config/config.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path shipped(const std::string& name) {
  return fs::path(env_or("LOCKSTEP_SOURCE_DIR", ".")) / "configs" / name;
}

TEST(Shipped, EveryFileReads) {
  int det = 0, rec = 0;
  for (const auto& entry : fs::recursive_directory_iterator(shipped(""))) {
    if (entry.path().extension() != ".yaml") continue;
    ASSERT_NO_THROW({
      const Config config = load_config(entry.path());
      det += config.model.type == ModelType::kDet;
      rec += config.model.type == ModelType::kRec;
      EXPECT_EQ(config.train.ckpt_save_dir, "runs/" + entry.path().stem().string());
    }) << entry.path();
  }
  EXPECT_GE(det, 18);
  EXPECT_GE(rec, 4);
}

TEST(Shipped, DbNetOnIcdar2015) {
  const Config config = load_config(shipped("det/dbnet/db_r50_icdar15.yaml"));
  EXPECT_EQ(config.model.name(), "det_resnet50-DBFPN-DBHead");
  EXPECT_EQ(config.model.backbone.pretrained,
            "https://download.mindspore.cn/toolkits/mindcv/resnet/resnet50-e0733ab8.ckpt");
  EXPECT_EQ(config.optimizer.opt, "sgd");
  EXPECT_FALSE(config.optimizer.exact_decay);
  EXPECT_EQ(config.train.gradient_accumulation_steps, 2);
  EXPECT_EQ(config.train.dataset.label_files,
            std::vector<fs::path>{"data/ocr/ic15/det/train/det_gt.txt"});
  ASSERT_EQ(config.train.dataset.pipeline.size(), 12u);
  const auto crop = std::get<ocr::RandomCropWithBBox>(config.train.dataset.pipeline.at(6));
  EXPECT_EQ(crop.crop_size, (std::array{640, 640}));
  EXPECT_EQ(crop.p, 1);
  const auto resize = std::get<ocr::DetResize>(config.eval.value().dataset.pipeline.at(2));
  EXPECT_EQ(resize.target_size, (std::array{736, 1280}));
  EXPECT_FALSE(resize.keep_ratio);
  EXPECT_EQ(std::get<ocr::DbPostprocessOptions>(config.postprocess).box_thresh, 0.6);
}

TEST(Shipped, DbNetPlusPlus) {
  const Config config = load_config(shipped("det/dbnet/dbpp_r50_icdar15.yaml"));
  EXPECT_TRUE(config.model.neck.use_asf && config.model.neck.channel_attention);
  EXPECT_TRUE(config.train.ema);
  EXPECT_EQ(config.train.ema_decay, 0.9999);
  EXPECT_EQ(config.train.loader.batch_size, 32);
  EXPECT_EQ(config.model.backbone.pretrained, "");
  EXPECT_NE(config.model.pretrained, "");
}

TEST(Shipped, CrnnOnWords) {
  const Config config = load_config(shipped("rec/crnn/crnn_resnet34.yaml"));
  EXPECT_EQ(config.model.name(), "rec_resnet34-RNNEncoder-CTCHead");
  EXPECT_EQ(config.model.head.out_channels, 37);
  EXPECT_EQ(config.model.head.weight_init, "crnn_customised");
  EXPECT_EQ(std::get<CtcLossConfig>(config.loss).pred_seq_len, 25);
  const auto normalize = std::get<ocr::NormalizeImage>(config.train.dataset.pipeline.at(3));
  EXPECT_TRUE(normalize.swap_channels);
  EXPECT_EQ(normalize.mean, (std::array{127.0, 127.0, 127.0}));
}

TEST(Shipped, CrnnInChinese) {
  const Config config = load_config(shipped("rec/crnn/crnn_resnet34_ch.yaml"));
  EXPECT_TRUE(config.train.dataset.lmdb.filter_max_len);
  EXPECT_EQ(config.train.dataset.lmdb.max_text_len, 40);
  const auto& read = std::get<ocr::CharacterOptions>(config.postprocess);
  EXPECT_EQ(read.character_dict_path, "data/dict/ch_dict.txt");
  const auto turn = std::get<ocr::Rotate90IfVertical>(config.train.dataset.pipeline.at(2));
  EXPECT_TRUE(turn.threshold == 2 && turn.counterclockwise);
  EXPECT_EQ(
      std::get<ocr::RecResizeNormForInfer>(config.eval.value().dataset.pipeline.at(3)).target_width,
      320);
}

}  // namespace
}  // namespace lockstep
