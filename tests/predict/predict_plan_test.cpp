#include "lockstep/predict/predict_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/predict/outcomes.h"
#include "lockstep/train/config/weights.h"
#include "tests/data/errors.h"
#include "tests/data/temp_dir.h"
#include "tests/predict/configs.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::TempDir;
using testing::write_text;

/// A detector's and a recogniser's file, and empty files of weights.
struct Files {
  TempDir dir;
  std::string det = (dir / "det.yaml").string();
  std::string rec = (dir / "rec.yml").string();
  std::string det_weights = (dir / "det.ckpt").string();
  std::string rec_weights = (dir / "rec.pth").string();
  Files() {
    write_text(det, testing::det_yaml());
    write_text(rec, testing::rec_yaml());
    write_text(det_weights, "");
    write_text(rec_weights, "");
  }
};

PredictOptions with(const std::string& config, std::vector<std::string> det,
                    std::vector<std::string> rec) {
  PredictOptions options;
  options.config = config;
  options.det = std::move(det);
  options.rec = std::move(rec);
  options.input = "pictures";
  return options;
}

void expect_refused(const PredictOptions& options, const std::string& part,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const std::string text = error_of(code, [&] { plan_prediction(options); });
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(PlanPrediction, ADetectorAlone) {
  const Files files;
  const auto plan = plan_prediction(with(files.det, {files.det_weights}, {}));
  ASSERT_TRUE(plan.det);
  EXPECT_FALSE(plan.rec);
  EXPECT_EQ(plan.det->weights, files.det_weights);
  EXPECT_EQ(plan.input, "pictures");
  EXPECT_EQ(plan.output, "output");
  EXPECT_EQ(plan.result_file(), "det_results.txt");
}

TEST(PlanPrediction, ARecogniserWithWhatItsSectionSays) {
  const Files files;
  auto options = with(files.rec, {}, {files.rec_weights});
  options.input.clear();
  const auto plan = plan_prediction(options);
  EXPECT_EQ(plan.input, "crops");
  EXPECT_EQ(plan.output, "./rec_results");
  EXPECT_EQ(plan.result_file(), "rec_results.txt");
}

TEST(PlanPrediction, BothInAnyWayOfSayingSo) {
  const Files files;
  for (const auto& options :
       {with(files.det, {files.det_weights}, {files.rec, files.rec_weights}),
        with(files.rec, {files.det_weights, files.det}, {files.rec_weights}),
        with("", {files.det, files.det_weights}, {files.rec_weights, files.rec})}) {
    const auto plan = plan_prediction(options);
    ASSERT_TRUE(plan.det && plan.rec);
    EXPECT_EQ(plan.det->weights, files.det_weights);
    EXPECT_EQ(plan.rec->weights, files.rec_weights);
    EXPECT_EQ(plan.rec->config.model.type, ModelType::kRec);
    EXPECT_EQ(plan.result_file(), "system_results.txt");
  }
}

TEST(PlanPrediction, WeightsAreThoseOfTheFileOrTheBest) {
  const Files files;
  expect_refused(with(files.rec, {}, {}), "predict.ckpt_load_path", ErrorCode::kNotFound);
  auto options = with(files.det, {}, {});
  const auto folder = files.dir / "run";
  options.overrides = {"train.ckpt_save_dir=" + folder.string()};
  expect_refused(options, "there is no best.ckpt", ErrorCode::kNotFound);
  std::filesystem::create_directories(folder);
  write_text(folder / "best.ckpt", "");
  EXPECT_EQ(plan_prediction(options).det->weights, folder / "best.ckpt");
  write_text(folder / "best.safetensors", "");  // an earlier run's
  EXPECT_EQ(plan_prediction(options).det->weights, folder / "best.ckpt");
  options.overrides.push_back("train.weights_format=safetensors");
  EXPECT_EQ(plan_prediction(options).det->weights, folder / "best.safetensors");
  options.overrides.push_back("eval.ckpt_load_path=" + files.det_weights);
  EXPECT_EQ(plan_prediction(options).det->weights, files.det_weights);
}

TEST(PlanPrediction, RefusesWhatContradicts) {
  const Files files;
  expect_refused(with("", {}, {}), "no network");
  expect_refused(with("", {files.det_weights}, {}), "no .yaml file describes");
  expect_refused(with(files.det, {files.det_weights, files.rec_weights}, {}), "two of a kind");
  expect_refused(with(files.det, {files.det}, {}), "both for model.type det");
  expect_refused(with("", {files.rec}, {}), "its model.type is rec");
  expect_refused(with("", {(files.dir / "no.ckpt").string(), files.det}, {}), "no.ckpt",
                 ErrorCode::kNotFound);
  auto nothing = with(files.det, {files.det_weights}, {});
  nothing.input.clear();
  expect_refused(nothing, "--input");
}

/// Options for a classifier whose files are in `dir`.
PredictOptions with_classifier(const TempDir& dir) {
  const std::string config = (dir / "cls.yaml").string();
  const std::string weights = (dir / "cls.safetensors").string();
  write_text(config, testing::cls_yaml());
  write_text(weights, "");
  PredictOptions options = with(config, {}, {});
  options.cls = {weights};
  return options;
}

TEST(PlanPrediction, AClassifier) {
  const TempDir dir;
  PredictOptions options = with_classifier(dir);
  const auto plan = plan_prediction(options);
  ASSERT_TRUE(plan.cls);
  EXPECT_EQ(&plan.first(), &*plan.cls);
  EXPECT_EQ(plan.cls->weights, options.cls.front());
  EXPECT_EQ(plan.result_file(), "cls_results.txt");
  EXPECT_EQ(picture_dataset(plan.cls->config).transforms.size(), 1U);

  const Files files;
  options.det = {files.det, files.det_weights};
  expect_refused(options, "works alone, without --det and --rec");
  options.det.clear();
  options.overrides = {"postprocess.label_list=[a, b]"};
  expect_refused(options, "postprocess.label_list has 2 names, model.head.num_classes is 3");
}

TEST(PlanPrediction, EvaluationOfOtherImagesHasNoTransformsForAPicture) {
  const TempDir dir;
  PredictOptions options = with_classifier(dir);
  const std::string folder =
      ".dataset={type: ImageFolderDataset, data_dir: d, transform_pipeline: [{Resize: {size: [8, "
      "8]}}]}";
  const std::string needs = ": to predict, the configuration needs a section predict with a ";
  options.overrides = {"eval" + folder};
  expect_refused(options,
                 "eval.dataset.type is ImageFolderDataset, train.dataset.type is "
                 "Cifar10Dataset" +
                     needs);
  options.overrides = {"train" + folder};
  expect_refused(options,
                 "eval.dataset.type is Cifar10Dataset, train.dataset.type is "
                 "ImageFolderDataset" +
                     needs);
  options.overrides.push_back(
      "predict.dataset={type: PredictDataset, transform_pipeline: [{Resize: "
      "{size: [8, 8]}}]}");
  EXPECT_NO_THROW(plan_prediction(options));
}

TEST(PlanPrediction, TheLatestCheckpointWhereNoneIsTheBest) {
  const Files files;
  auto options = with(files.det, {}, {});
  const auto folder = files.dir / "run";
  options.overrides = {"train.ckpt_save_dir=" + folder.string()};
  std::filesystem::create_directories(folder / "latest");
  EXPECT_EQ(plan_prediction(options).det->weights, folder / "latest");
}

TEST(ClassNames, AreThoseOfTheListOrOfTheDataOrNumbers) {
  const TempDir dir;
  const std::string config = (dir / "cls.yaml").string();
  write_text(config, testing::cls_yaml());
  const auto names = [&](const std::string& override) {
    const std::vector<std::string> overrides = {"postprocess.label_list=null", override};
    return class_names(load_config(config, overrides));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(class_names(load_config(config)), (Names{"circle", "ring", "square"}));
  EXPECT_EQ(names("train.ckpt_save_dir=x"), (Names{"0", "1", "2"}));
  write_text(dir / "data_batch_1.bin", "");
  write_text(dir / "batches.meta.txt", "airplane\nautomobile\n\n");
  EXPECT_EQ(names("train.dataset.data_dir=" + dir.path().string()),
            (Names{"airplane", "automobile", "2"}));
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument,
                     [&] { names("train.dataset={type: FashionMnistDataset, data_dir: d}"); }),
            "the data of training have 10 names of classes, model.head.num_classes is 3: name "
            "those of the weights by postprocess.label_list");
  const auto of_shards = [&](const std::string& eval) {
    const std::vector<std::string> overrides = {"postprocess.label_list=null", eval,
                                                "train.dataset={type: WebDataset, shards: s.tar}"};
    return load_config(config, overrides);
  };
  EXPECT_EQ(class_names(of_shards("eval.dataset.data_dir=e")), (Names{"0", "1", "2"}));
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument, [&] { of_shards("system.seed=1"); })
                .find("eval.dataset.data_dir is missing: a folder"),
            std::string::npos)
      << "shards are in no folder that an evaluation could take";
}

TEST(ClassNames, OfPicturesInFilesAreThoseOfTraining) {
  const TempDir dir;
  const std::string config = (dir / "cls.yaml").string();
  write_text(config, testing::cls_yaml());
  const auto names = [&](const std::string& dataset) {
    const std::vector<std::string> overrides = {"postprocess.label_list=null",
                                                "train.dataset={" + dataset + "}"};
    return class_names(load_config(config, overrides));
  };
  using Names = std::vector<std::string>;
  const std::string folder = "type: ImageFolderDataset, data_dir: " + (dir / "data").string();
  EXPECT_EQ(names(folder), (Names{"0", "1", "2"})) << "the data are elsewhere";
  for (const char* name : {"data/dog", "data/cat"}) {
    std::filesystem::create_directories(dir / name);
  }
  EXPECT_EQ(names(folder), (Names{"cat", "dog", "2"}));
  for (const char* name : {"data/ant", "data/bee"}) {
    std::filesystem::create_directories(dir / name);
  }
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [&] { names(folder); }),
            "the data of training have 4 names of classes, model.head.num_classes is 3: name "
            "those of the weights by postprocess.label_list");
  write_text(dir / "data/x.png", "x");
  write_text(dir / "l.csv", "x.png,ring\ny.png,arc\n");
  EXPECT_EQ(names("type: ImageListDataset, data_dir: " + (dir / "data").string() +
                  ", label_file: " + (dir / "l.csv").string()),
            (Names{"arc", "ring", "2"}));
  EXPECT_EQ(names("type: ImageListDataset, data_dir: " + (dir / "none").string() +
                  ", label_file: " + (dir / "l.csv").string()),
            (Names{"arc", "ring", "2"}))
      << "the pictures are elsewhere";
}

TEST(ClassNames, ThatTrainingLeftComeBeforeThoseOfTheData) {
  const TempDir dir;
  const std::string file = (dir / "cls.yaml").string();
  write_text(file, testing::cls_yaml());
  for (const char* name : {"data/ant", "data/cat", "data/dog"}) {
    std::filesystem::create_directories(dir / name);
  }
  const std::vector<std::string> overrides = {
      "postprocess.label_list=null",
      "train.dataset={type: ImageFolderDataset, data_dir: " + (dir / "data").string() + "}"};
  const Config config = load_config(file, overrides);
  using Names = std::vector<std::string>;
  std::filesystem::create_directories(dir / "run/best");
  EXPECT_EQ(class_names(config, dir / "run/best"), (Names{"ant", "cat", "dog"}));
  write_class_names(dir / "run", {"cat", "dog"});
  for (const char* weights :
       {"run/best", "run/best/", "run/best.ckpt", "run/best/model.safetensors"}) {
    EXPECT_EQ(class_names(config, dir / weights), (Names{"cat", "dog", "2"})) << weights;
  }
  EXPECT_EQ(class_names(config, dir / "other/best"), (Names{"ant", "cat", "dog"}));
  write_class_names(dir / "run", {"a", "b", "c", "d"});
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [&] { class_names(config, dir / "run/best"); }),
            "classes.txt has 4 names of classes, model.head.num_classes is 3: name those of the "
            "weights by postprocess.label_list");
}

TEST(ClassLine, HasTheMostProbableFirst) {
  const std::vector<std::string> names = {"a", "b\"", "c"};
  const std::vector<float> probabilities = {0.25F, 0.5F, 0.25F};
  EXPECT_EQ(class_line("x.png", probabilities, names),
            "x.png\t[{\"label\": \"b\\\"\", \"class\": 1, \"probability\": 0.500000}, "
            "{\"label\": \"a\", \"class\": 0, \"probability\": 0.250000}, "
            "{\"label\": \"c\", \"class\": 2, \"probability\": 0.250000}]");
}

TEST(ClassLine, IsOneLineWhateverTheFilesName) {
  EXPECT_EQ(class_line("a\nb\t.png", std::vector<float>{1}, {"c\nd"}),
            "a?b?.png\t[{\"label\": \"c\\nd\", \"class\": 0, \"probability\": 1.000000}]");
}

TEST(ClassLine, IsJsonWhateverTheNetworkAndTheNamesSay) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> probabilities = {none, 0.25F, none, 0.5F};
  EXPECT_EQ(class_line("x.png", probabilities, {"a", "\xff", "c", "d"}),
            "x.png\t[{\"label\": \"d\", \"class\": 3, \"probability\": 0.500000}, "
            "{\"label\": \"\xef\xbf\xbd\", \"class\": 1, \"probability\": 0.250000}, "
            "{\"label\": \"a\", \"class\": 0, \"probability\": null}, "
            "{\"label\": \"c\", \"class\": 2, \"probability\": null}]");
}

TEST(ClassLine, ShowsWhetherAProbabilityIsNoNumber) {
  const std::vector<float> good = {0.25F, 0.75F};
  const std::vector<float> bad = {0.25F, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<std::string> names = {"a", "\"probability\": null"};
  EXPECT_FALSE(has_no_number(class_line("\"probability\": null", good, names)));
  EXPECT_TRUE(has_no_number(class_line("x.png", bad, names)));
}

TEST(ClassTable, HasARowForALine) {
  EXPECT_EQ(class_table_head(1), "path,class,score");
  EXPECT_EQ(class_table_head(3), "path,class,score,class_2,score_2,class_3,score_3");
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> probabilities = {0.25F, 0.5F, none};
  const std::vector<std::string> names = {"a, b", "say \"c\"", "d"};
  EXPECT_EQ(class_table_row("sub/x.png", class_line("x.png", probabilities, names)),
            "sub/x.png,\"say \"\"c\"\"\",0.500000,\"a, b\",0.250000,d,nan");
  EXPECT_EQ(class_table_row("x\ty.png", class_line("x\ty.png", probabilities, names, 1)),
            "x\ty.png,\"say \"\"c\"\"\",0.500000");
}

TEST(PicturePipeline, IsThatOfEvaluationWithoutLabels) {
  const Files files;
  const auto plan = plan_prediction(with(files.det, {files.det_weights}, {}));
  const auto pipeline = picture_pipeline(plan.det->config);
  ASSERT_EQ(pipeline.size(), 4U);
  EXPECT_TRUE(std::get<ocr::DecodeImage>(pipeline[0]).keep_ori);
  EXPECT_TRUE(std::holds_alternative<ocr::DetResize>(pipeline[1]));
  EXPECT_EQ(picture_mode(plan.det->config), ocr::ImageMode::kRgb);
}

TEST(PicturePipeline, OfPredictionComesFirstAndCropsAreDecoded) {
  const Files files;
  const auto plan = plan_prediction(with(files.rec, {}, {files.rec_weights}));
  EXPECT_EQ(picture_pipeline(plan.rec->config).size(), 3U);
  EXPECT_TRUE(
      std::holds_alternative<ocr::RecResizeNormForInfer>(crop_pipeline(plan.rec->config)[0]));
  EXPECT_EQ(picture_mode(plan.rec->config), ocr::ImageMode::kBgr);
}

}  // namespace
}  // namespace lockstep
