// Training with the transforms of a shared library.

#include "tests/train/program/pictures.h"

namespace lockstep {
namespace {

class OwnTransformsProgram : public PicturesProgram {
 protected:
  void SetUp() override {
    PicturesProgram::SetUp();
    write_class_folders(Split::kAll, "kinds");
    const std::string folder = "    type: ImageFolderDataset\n    data_dir: kinds\n";
    configure(folder, folder);
  }

  /// The library, and three steps with this item in front of the other transforms.
  static std::string with(const std::string& item, const std::string& more = "") {
    return fmt::format(
        "--plugin {}/lockstep_own_transforms.so {} -o scheduler.num_epochs=1 train.max_steps=3 "
        "parallel.virtual_ranks=2 system.val_while_train=False "
        "train.dataset.transform_pipeline=\"[{{{}}}, {{RandomHorizontalFlip: }}, "
        "{{NormalizeImage: }}]\" ",
        std::getenv("LOCKSTEP_BIN_DIR"), more, item);
  }
};

TEST_F(OwnTransformsProgram, NeitherRanksNorWorkersShow) {
  const std::string args = with("RandomSpeckle: {most: 60}");
  const auto one = train(args + "train.ckpt_save_dir=one");
  ASSERT_EQ(one.status, 0) << one.err;
  const auto steps = steps_of("one");
  EXPECT_EQ(steps.size(), 3u);
  const auto workers = train(args + "train.ckpt_save_dir=workers train.loader.num_workers=3");
  ASSERT_EQ(workers.status, 0) << workers.err;
  EXPECT_EQ(steps_of("workers"), steps);
  const auto ranks = train(args + "train.ckpt_save_dir=ranks train.loader.num_workers=3", 2);
  ASSERT_EQ(ranks.status, 0) << ranks.err;
  EXPECT_EQ(steps_of("ranks"), steps);
  const auto less = train(with("RandomSpeckle: {most: 1}") + "train.ckpt_save_dir=less");
  ASSERT_EQ(less.status, 0) << less.err;
  EXPECT_NE(steps_of("less"), steps) << "the setting counts";
}

/// The same of small images, which the folder "data" has.
class OwnTransformsOfRecords : public OwnTransformsProgram {
 protected:
  void SetUp() override { PicturesProgram::SetUp(); }
};

TEST_F(OwnTransformsOfRecords, NeitherRanksNorWorkersNorFilesShow) {
  const std::string args = with("RandomCrop: }, {RandomSpeckle: {most: 60}");
  const auto one = train(args + "train.ckpt_save_dir=one");
  ASSERT_EQ(one.status, 0) << one.err;
  const auto steps = steps_of("one");
  EXPECT_EQ(steps.size(), 3u);
  const auto ranks = train(args + "train.ckpt_save_dir=ranks train.loader.num_workers=3", 2);
  ASSERT_EQ(ranks.status, 0) << ranks.err;
  EXPECT_EQ(steps_of("ranks"), steps);
  const auto less =
      train(with("RandomCrop: }, {RandomSpeckle: {most: 1}") + "train.ckpt_save_dir=less");
  ASSERT_EQ(less.status, 0) << less.err;
  EXPECT_NE(steps_of("less"), steps) << "the setting counts";
  write_list(Split::kTrain, "train");
  const std::string list =
      "    type: ImageListDataset\n    data_dir: png\n    label_file: train.csv\n";
  configure(list, list);
  const auto files = train(args + "train.ckpt_save_dir=files");
  ASSERT_EQ(files.status, 0) << files.err;
  EXPECT_EQ(steps_of("files"), steps) << "PNG files of the same pixels";
}

TEST_F(OwnTransformsOfRecords, FaultsNameTheImage) {
  const auto picky = train(with("Picky: ") + "train.ckpt_save_dir=picky");
  ASSERT_EQ(picky.status, 0) << picky.err;
  EXPECT_NE(picky.out.find(" cannot be used: data: image "), std::string::npos) << picky.out;
  EXPECT_NE(picky.out.find(": Picky: its first byte is a multiple; sample "), std::string::npos)
      << picky.out;
  const auto broken = train(with("Broken: ") + "train.ckpt_save_dir=broken");
  EXPECT_EQ(broken.status, 1) << broken.out;
  EXPECT_NE(broken.err.find("lockstep train: error: data: image "), std::string::npos)
      << broken.err;
  EXPECT_NE(broken.err.find(": the transform Broken failed: no such row"), std::string::npos)
      << broken.err;
}

TEST_F(OwnTransformsProgram, AreChecked) {
  const auto good = train(with("RandomSpeckle: ", "--check"));
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_NE(good.out.find("most: 16"), std::string::npos) << good.out;
  const auto fault = [&](const std::string& item) {
    const auto checked = train(with(item, "--check"));
    EXPECT_EQ(checked.status, 2) << item << checked.out;
    return checked.err;
  };
  const auto setting = fault("RandomSpeckle: {mots: 3}");
  EXPECT_NE(setting.find("RandomSpeckle.mots', did you mean 'most'?"), std::string::npos)
      << setting;
  const auto kind = fault("RandomSpeckle: {most: many}");
  EXPECT_NE(kind.find("RandomSpeckle.most must be a whole number from 1 to 255, not 'many'"),
            std::string::npos)
      << kind;
  const auto name = fault("RandomSpekle: ");
  EXPECT_NE(name.find("did you mean 'RandomSpeckle'?"), std::string::npos) << name;
}

/// The one line of an error of --check.
std::string refusal(const Outcome& checked) {
  EXPECT_EQ(checked.status, 2) << checked.out;
  EXPECT_EQ(text_count(checked.err, "\n"), 1) << checked.err;
  return checked.err;
}

TEST_F(OwnTransformsProgram, AreTriedOnOnePicture) {
  const std::string key = "train.dataset.transform_pipeline: ";
  const auto broken = refusal(train(with("Broken: ", "--check")));
  EXPECT_NE(broken.find(key + "kinds/kind"), std::string::npos) << broken;
  EXPECT_NE(broken.find(".png: the transform Broken failed: no such row"), std::string::npos)
      << broken;
  const auto refusing = refusal(train(with("Refusing: ", "--check")));
  EXPECT_NE(refusing.find(key + "sample 0 cannot be used: kinds/kind"), std::string::npos)
      << refusing;
  EXPECT_NE(refusing.find(".png: Refusing: it never fits; nor could 10 others"), std::string::npos)
      << refusing;
  const auto counting = refusal(train(with("RandomSpeckle: }, {Counting: ", "--check")));
  EXPECT_NE(counting.find(key + "sample 0 is another picture when it is made again: "
                                "RandomSpeckle, Counting must depend on"),
            std::string::npos)
      << counting;
  const auto in_eval = with("RandomSpeckle: ", "--check") + "eval.dataset.transform_pipeline=";
  const auto eval = refusal(train(in_eval + "\"[{Broken: }, {NormalizeImage: }]\""));
  EXPECT_NE(eval.find("eval.dataset.transform_pipeline: kinds/kind"), std::string::npos) << eval;
  const auto unusable = train(in_eval + "\"[{Refusing: }, {NormalizeImage: }]\"");
  EXPECT_EQ(unusable.status, 0) << "another evaluation may have usable ones";
  EXPECT_EQ(text_count(unusable.err, ".png: Refusing: it never fits\n"), 1) << unusable.err;
  const auto missing = train(with("Broken: ", "--check") +
                             "train.dataset.data_dir=nowhere parallel.virtual_ranks=0");
  EXPECT_EQ(missing.status, 0) << "there is no picture to try: " << missing.err;
}

TEST_F(OwnTransformsOfRecords, AreNotBlamedForMissingPictures) {
  std::string list = "path,label\n";
  for (int i = 0; i < 1000; ++i) list += fmt::format("{:03}.png,0\n", i);
  write_file_atomically(folder_ / "few.csv", std::string_view(list));
  write_record(Cifar10::load(folder_ / "data", Split::kTrain), 0, folder_ / "few/500.png");
  const std::string few =
      "    type: ImageListDataset\n    data_dir: few\n    label_file: few.csv\n";
  configure(few, few);
  const auto missing = refusal(train(with("RandomSpeckle: ", "--check")));
  EXPECT_NE(missing.find(": train.dataset: sample 0 cannot be used: "), std::string::npos)
      << missing;
  EXPECT_NE(missing.find("few/000.png"), std::string::npos) << missing;
}

TEST_F(OwnTransformsOfRecords, AreTriedOnOneImage) {
  const std::string key = "train.dataset.transform_pipeline: data: image 0: ";
  const auto broken = refusal(train(with("Broken: ", "--check")));
  EXPECT_NE(broken.find(key + "the transform Broken failed: no such row"), std::string::npos)
      << broken;
  const auto halving = refusal(train(with("Halving: ", "--check")));
  EXPECT_NE(halving.find(key + "transform_pipeline: Halving changed the size, so the result has 16 "
                               "x 16 pixels, not 32 x 32: behind it Resize "),
            std::string::npos)
      << halving;
  const auto cut = train(with("Halving: }, {CenterCrop: {size: 32}", "--check"));
  EXPECT_EQ(cut.status, 0) << cut.err;
}

TEST_F(OwnTransformsProgram, FaultsNameThePicture) {
  const auto picky = train(with("Picky: ") + "train.ckpt_save_dir=picky");
  ASSERT_EQ(picky.status, 0) << picky.err;
  EXPECT_NE(picky.out.find(" cannot be used: kinds/kind"), std::string::npos) << picky.out;
  EXPECT_NE(picky.out.find(".png: Picky: its first byte is a multiple; sample "), std::string::npos)
      << picky.out;
  const auto broken = train(with("Broken: ") + "train.ckpt_save_dir=broken");
  EXPECT_EQ(broken.status, 1) << broken.out;
  EXPECT_NE(broken.err.find("lockstep train: error: kinds/kind"), std::string::npos) << broken.err;
  EXPECT_NE(broken.err.find(".png: the transform Broken failed: no such row"), std::string::npos)
      << broken.err;
}

}  // namespace
}  // namespace lockstep
