#include "lockstep/train/config/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "lockstep/base/env.h"
#include "lockstep/error.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/recipe_file.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

constexpr auto kMinimal = R"(system:
  seed: 7
model:
  type: cls
  backbone: {name: resnet18, stem: cifar}
  head: {num_classes: 10}
scheduler: {lr: 1e-3, num_epochs: 5}
train:
  ckpt_save_dir: out
  dataset: {data_dir: d}
  loader: {batch_size: 32}
)";

Config read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Node tree = parse_yaml(text, "a.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

std::string error_with(const std::string& override_item) {
  return error_of(kMinimal, {override_item});
}

TEST(Config, ReadsValuesAndDefaults) {
  const Config config = read(kMinimal);
  EXPECT_EQ(config.system.seed, 7);
  EXPECT_EQ(config.model.backbone.name, "resnet18");
  EXPECT_EQ(config.model.name(), "resnet18-None-ClsHead");
  EXPECT_DOUBLE_EQ(config.scheduler.lr, 1e-3);
  EXPECT_EQ(config.train.loader.batch_size, 32);
  EXPECT_TRUE(config.train.loader.shuffle);
  EXPECT_EQ(config.system.ckpt_save_policy, "top_k");
  EXPECT_FALSE(config.eval.has_value());
}

TEST(Config, UnknownKeysNameTheNearest) {
  std::string text = kMinimal;
  text.replace(text.find("  dataset:"), 0, "  max_step: 3\n");
  EXPECT_EQ(error_of(text), "a.yaml:10: unknown key 'train.max_step', did you mean 'max_steps'?");
  EXPECT_EQ(error_with("train.max_step=3"),
            "-o train.max_step=3: unknown key 'train.max_step', did you mean 'max_steps'?");
  EXPECT_EQ(error_with("sheduler.lr=1"),
            "-o sheduler.lr=1: unknown key 'sheduler', did you mean 'scheduler'?");
  EXPECT_EQ(error_with("train.loader.qqqqqqqq=1"),
            "-o train.loader.qqqqqqqq=1: unknown key 'train.loader.qqqqqqqq'");
}

TEST(Config, KeysWithoutTheirSectionNameIt) {
  EXPECT_EQ(error_with("max_steps=3"),
            "-o max_steps=3: unknown key 'max_steps', did you mean 'train.max_steps'?");
  EXPECT_EQ(error_with("batch_size=8"),
            "-o batch_size=8: unknown key 'batch_size', did you mean 'train.loader.batch_size'?");
  EXPECT_EQ(error_with("qqqqqqqq=1"), "-o qqqqqqqq=1: unknown key 'qqqqqqqq'");
  std::string text = kMinimal;  // faults of the sections are reported later
  text.replace(text.find("  dataset:"), 0, "  max_steps: many\n");
  EXPECT_EQ(error_of("ckpt_save_dir: out\n" + text),
            "a.yaml:1: unknown key 'ckpt_save_dir', did you mean 'train.ckpt_save_dir'?");
}

TEST(Config, AMisspeltKeyIsToldBeforeTheOneThatIsMissing) {
  const auto with = [](const std::string& key, const std::string& misspelt) {
    std::string text = kMinimal;
    text.replace(text.find(key), key.size(), misspelt);
    return error_of(text);
  };
  for (const auto& [key, misspelt, line, path] :
       std::vector<std::tuple<std::string, std::string, int, std::string>>{
           {"ckpt_save_dir", "ckpt_savedir", 9, "train."},
           {"batch_size", "bathc_size", 11, "train.loader."},
           {"loader", "laoder", 11, "train."},
           {"dataset", "data_set", 10, "train."},
           {"backbone", "backbonne", 5, "model."},
           {"name", "nmae", 5, "model.backbone."},
           {"type: cls", "tpye: det", 4, "model."},
           {"head", "haed", 6, "model."},
           {"num_classes", "num_class", 6, "model.head."}}) {
    const auto name = [](const std::string& text) { return text.substr(0, text.find(':')); };
    EXPECT_EQ(with(key, misspelt), "a.yaml:" + std::to_string(line) + ": unknown key '" + path +
                                       name(misspelt) + "', did you mean '" + name(key) + "'?");
  }
  EXPECT_EQ(with("  ckpt_save_dir: out\n", ""),
            "a.yaml:9: train.ckpt_save_dir is missing: a folder for results");
}

TEST(Config, ASectionWhoseNameIsMisspeltIsNotMissing) {
  std::string text = kMinimal;
  text.replace(text.find("train:"), 6, "trian:");
  EXPECT_EQ(error_of(text), "a.yaml:8: unknown key 'trian', did you mean 'train'?");
  text = kMinimal;
  text.replace(text.find("model:"), 6, "modle:");
  EXPECT_EQ(error_of(text), "a.yaml:3: unknown key 'modle', did you mean 'model'?");
}

TEST(Config, WrongTypesAndRangesNameWhatIsAllowed) {
  EXPECT_EQ(error_with("train.loader.batch_size=abc"),
            "-o train.loader.batch_size=abc: train.loader.batch_size must be a whole number from 1 "
            "to 16777216, not 'abc'");
  EXPECT_EQ(error_with("train.max_steps=-1").find("-o train.max_steps=-1: train.max_steps must be"),
            0u);
  EXPECT_NE(error_with("scheduler.lr='0.1'").find("must be a number from 0"), std::string::npos);
  EXPECT_NE(error_with("scheduler.lr=.nan").find("must be a number from 0"), std::string::npos);
  EXPECT_NE(error_with("train.clip_grad=1").find("must be True or False, not '1'"),
            std::string::npos);
  EXPECT_NE(error_with("train.loader=5").find("train.loader must be a mapping, not '5'"),
            std::string::npos);
  EXPECT_NE(error_with("scheduler.scheduler=cosine_decy").find("did you mean 'cosine_decay'?"),
            std::string::npos);
  EXPECT_NE(error_with("scheduler.milestones=[1, x]").find("must be a list of whole numbers"),
            std::string::npos);
  EXPECT_NE(error_with("scheduler.scheduler=multi_step_decay").find("scheduler.milestones must"),
            std::string::npos);
}

TEST(Config, TheMetricGivesTheDirectionOfEarlyStopping) {
  EXPECT_EQ(error_with("train.early_stopping={metric: acc, mode: min}"),
            "-o train.early_stopping={metric: acc, mode: min}: train.early_stopping.mode cannot be "
            "'min': the metric determines whether less is better");
}

TEST(Config, DataParallelOptionsAreChecked) {
  EXPECT_NE(error_with("parallel.comm_hook=bf61").find("did you mean 'bf16'?"), std::string::npos);
  EXPECT_NE(error_with("parallel.static_grph=True").find("did you mean 'static_graph'?"),
            std::string::npos);
  EXPECT_EQ(error_with("parallel.shards=4"),
            "-o parallel.shards=4: unknown key 'parallel.shards', did you mean 'virtual_ranks'?");
  EXPECT_NE(error_with("parallel.order=ani").find("did you mean 'any'?"), std::string::npos);
  EXPECT_EQ(read(kMinimal, {"parallel.global_batch=256"}).parallel.global_batch, 256);
  EXPECT_NE(error_of(std::string(kMinimal) + "parallel: {global_batch: 256}\n",
                     {"train.gradient_accumulation_steps=2"})
                .find("train.gradient_accumulation_steps must be 1 with parallel.global_batch"),
            std::string::npos);
  EXPECT_NE(error_with("parallel={virtual_ranks: 4, device: cuda}")
                .find("parallel.device cannot be cuda together with parallel.virtual_ranks"),
            std::string::npos);
  EXPECT_NE(error_with("parallel={virtual_ranks: 4, order: any}")
                .find("parallel.order must be fixed together with parallel.virtual_ranks"),
            std::string::npos);
  EXPECT_NE(error_with("parallel={find_unused_parameters: True, static_graph: True}")
                .find("cannot be on together with parallel.find_unused_parameters"),
            std::string::npos);
  for (const std::string key :
       {"sync_bn: True", "find_unused_parameters: True", "static_graph: True", "comm_hook: bf16"}) {
    EXPECT_NE(error_with("parallel={" + key + ", virtual_ranks: 2}")
                  .find("cannot be on together with parallel.virtual_ranks"),
              std::string::npos)
        << key;
  }
  EXPECT_NE(
      error_with("parallel={broadcast_buffers: False, virtual_ranks: 2}")
          .find("parallel.broadcast_buffers cannot be off together with parallel.virtual_ranks"),
      std::string::npos);
}

TEST(Config, MissingKeysAreNamed) {
  EXPECT_EQ(error_of("model:\n  backbone: {name: resnet18}\n"),
            "a.yaml:2: model.head.num_classes is missing");
  EXPECT_NE(error_with("train.loader.batch_size=null").find("train.loader.batch_size is missing"),
            std::string::npos);
  EXPECT_NE(error_with("system.val_while_train=True").find("there is no section 'eval'"),
            std::string::npos);
}

// Unsupported values are refused, never ignored.
TEST(Config, KnownKeysOfMindocrThatCannotBeHonoured) {
  for (const auto* item :
       {"optimizer.opt=adadelta", "optimizer.grouping_strategy=visionlan", "optimizer.clip=1",
        "model.type=kie", "model.neck={name: DBFPN}", "model.transform={name: STN_ON}",
        "model.pretrained=True", "model.backbone.pretrained=True", "loss.aux_factor=0.5",
        "train.dataset.type=LMDBDataset", "train.dataset.label_file=gt.txt"}) {
    const auto error = error_with(item);
    const std::string key = std::string(item).substr(0, std::string(item).find('='));
    EXPECT_EQ(error.find(std::string("-o ") + item + ": " + key), 0u) << error;
  }
}

TEST(Config, MixedPrecisionHasMindocrsKeys) {
  const Config plain = read(kMinimal, {});
  EXPECT_EQ(plain.system.amp_level, AmpLevel::kO0);
  EXPECT_FALSE(plain.loss_scaler || plain.system.drop_overflow_update);
  const Config config =
      read(kMinimal,
           {"system.amp_level=O2", "system.amp_level_infer=O3", "system.drop_overflow_update=True",
            "loss_scaler={type: dynamic, loss_scale: 512, scale_window: 1000}"});
  EXPECT_EQ(config.system.amp_level, AmpLevel::kO2);
  EXPECT_EQ(config.system.amp_level_infer, AmpLevel::kO3);
  EXPECT_TRUE(config.system.drop_overflow_update);
  const auto options = config.loss_scaler.value().options();
  EXPECT_TRUE(options.dynamic);
  EXPECT_EQ(options.init_scale, 512);
  EXPECT_EQ(options.growth_factor, 2);
  EXPECT_EQ(options.backoff_factor, 0.5);
  EXPECT_EQ(options.growth_interval, 1000);
  EXPECT_NO_THROW(options.validate());
  const auto fixed = read(kMinimal, {"loss_scaler={type: static, loss_scale: 1024}"});
  EXPECT_EQ(fixed.loss_scaler.value().options().init_scale, 1024);
  EXPECT_FALSE(fixed.loss_scaler->dynamic);
}

TEST(Config, MixedPrecisionThatCannotBe) {
  const auto expect = [](const std::string& item, const std::string& message) {
    const auto error = error_with(item);
    EXPECT_NE(error.find(message), std::string::npos) << error;
  };
  expect("system.amp_level=O5", "system.amp_level must be one of O0, O1, O2, O3, not 'O5'");
  expect("loss_scaler={loss_scale: 1}", "loss_scaler.type is missing: static or dynamic");
  expect("loss_scaler={type: static}", "loss_scaler.loss_scale is missing");
  expect("loss_scaler={type: dynamc, loss_scale: 1}",
         "loss_scaler.type must be one of static, dynamic, not 'dynamc', did you mean 'dynamic'?");
  expect("loss_scaler={type: static, loss_scale: 0}", "loss_scaler.loss_scale must be a number");
  expect("loss_scaler={type: dynamic, loss_scale: 1, scale_factor: 1}",
         "loss_scaler.scale_factor must be a number");
  expect("loss_scaler={type: dynamic, loss_scale: 1, scale_windows: 1}",
         "unknown key 'loss_scaler.scale_windows', did you mean 'scale_window'?");
  for (const std::string hook : {"int8", "powersgd"}) {
    const auto error = error_of(std::string(kMinimal) + "parallel: {comm_hook: " + hook +
                                "}\nloss_scaler: {type: dynamic, loss_scale: 512}\n");
    EXPECT_NE(error.find("parallel.comm_hook must be none, auto, fp16 or bf16 with a dynamic"),
              std::string::npos)
        << error;
  }
}

TEST(Config, EvaluationCountsEverySample) {
  // MindOCR's own recipes have True.
  EXPECT_EQ(read(kMinimal, {"eval.loader={batch_size: 8, drop_remainder: True}"})
                .eval->loader.drop_remainder,
            false);
}

TEST(Config, KeysOfMindocrWithoutEffectAreAccepted) {
  const Config config = read(
      kMinimal, {"system.mode=0", "system.device_id=7", "system.amp_level=O0", "train.ema=False",
                 "train.loader.max_rowsize=16", "train.dataset.output_columns=[image, label]",
                 "loss_scaler={type: static, loss_scale: 1.0}", "model.neck=null",
                 "train.pred_cast_fp32=False", "optimizer.schedule_decay=0.004",
                 "system.log_level=logging.CRITICAL", "postprocess={name: ClsPostprocess}"});
  EXPECT_EQ(config.train.loader.batch_size, 32);
}

TEST(Config, OverridesAreYamlAndMayHoldEquals) {
  const Config config =
      read(kMinimal, {"train.ckpt_save_dir=a=b", "scheduler.milestones=[3, 4]",
                      "model.resume=ckpt/latest", "eval.loader.batch_size=8",
                      "system.ckpt_save_policy=null", "optimizer.no_weight_decay_params=bn"});
  EXPECT_EQ(config.train.ckpt_save_dir, "a=b");
  EXPECT_EQ(config.scheduler.milestones, (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(config.model.resume);
  EXPECT_EQ(config.model.resume_path, "ckpt/latest");
  EXPECT_EQ(config.eval->loader.batch_size, 8);
  EXPECT_EQ(config.system.ckpt_save_policy, "");
  EXPECT_EQ(config.optimizer.no_weight_decay_params, std::vector<std::string>{"bn"});
}

TEST(Config, VariablesOfTheEnvironmentStandInValues) {
  ASSERT_EQ(::setenv("LOCKSTEP_TEST_PATH", "/data/cifar", 1), 0);
  ::unsetenv("LOCKSTEP_TEST_NONE");
  const auto dir_of = [](const std::string& value) {
    Node tree = parse_yaml(kMinimal, "a.yaml");
    apply_overrides(tree, std::vector<std::string>{"train.dataset.data_dir=" + value});
    expand_variables(tree);
    return read_config(std::move(tree)).train.dataset.data_dirs.at(0).string();
  };
  EXPECT_EQ(dir_of("${LOCKSTEP_TEST_PATH}/bin"), "/data/cifar/bin");
  EXPECT_EQ(dir_of("${LOCKSTEP_TEST_NONE:-data/x}"), "data/x");
  EXPECT_EQ(dir_of("a$b"), "a$b");
  const auto fault = [&](const std::string& value) -> std::string {
    try {
      return dir_of(value);
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(fault("${LOCKSTEP_TEST_NONE}/bin"),
            "-o train.dataset.data_dir=${LOCKSTEP_TEST_NONE}/bin: '${LOCKSTEP_TEST_NONE}/bin': the "
            "environment variable LOCKSTEP_TEST_NONE is not set");
  EXPECT_NE(fault("${LOCKSTEP_TEST_PATH").find("has no '}'"), std::string::npos);
  ::unsetenv("LOCKSTEP_TEST_PATH");
}

TEST(Config, AFileThatIsNearlyRightNamesTheNearest) {
  const auto folder =
      std::filesystem::path(env_or("LOCKSTEP_SOURCE_DIR", ".")) / "configs/rec/crnn";
  const auto near = [&](const std::string& name) -> std::string {
    try {
      load_config(folder / name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(near("crnn_resnet34_zh.yaml"), (folder / "crnn_resnet34_zh.yaml").string() +
                                               ": no such file, did you mean "
                                               "'crnn_resnet34_ch.yaml'?");
}

TEST(Config, BadOverrides) {
  EXPECT_EQ(error_with("train.max_steps"),
            "-o train.max_steps: an override has the form key.sub=value");
  EXPECT_EQ(error_with("=3"), "-o =3: an override has the form key.sub=value");
  EXPECT_EQ(error_with("train..x=3"), "-o train..x=3: an override has the form key.sub=value");
  EXPECT_EQ(error_with("system.seed.x=3"),
            "-o system.seed.x=3: 'x' cannot be set, its parent is no mapping");
  EXPECT_NE(error_with("common.batch_size=3").find("changes nothing"), std::string::npos);
  EXPECT_EQ(error_with("system.seed=[1").find("-o system.seed=[1"), 0u);
}

TEST(Config, PipelineIsTyped) {
  const std::string flip = "{RandomHorizontalFlip: }";
  const auto pipeline = [](const std::string& items) {
    return "train.dataset.transform_pipeline=[" + items + "]";
  };
  const Config config = read(
      kMinimal, {pipeline("{RandomCrop: {padding: 2}}, " + flip +
                          ", {NormalizeImage: {mean: [1, 2, 3], std: [4, 5, 6], is_hwc: True}}, "
                          "{ToCHWImage: }")});
  const auto& transforms = config.train.dataset.transforms;
  ASSERT_EQ(transforms.size(), 3u);
  EXPECT_EQ(std::get<RandomCrop>(transforms[0].step).padding, 2);
  EXPECT_EQ(std::get<RandomHorizontalFlip>(transforms[1].step).prob, 0.5);
  const auto& normalize = std::get<Normalize>(transforms[2].step);
  EXPECT_EQ(normalize.mean, (std::vector<double>{1. / 255, 2. / 255, 3. / 255}));
  EXPECT_NE(error_with(pipeline("{RandomCropp: }")).find("did you mean 'RandomCrop'?"),
            std::string::npos);
  EXPECT_NE(error_with(pipeline("{RandomCrop: {paddng: 1}}")).find("did you mean 'padding'?"),
            std::string::npos);
  EXPECT_NE(error_with(pipeline("{NormalizeImage: {std: [1, x]}}")).find("a number or a list"),
            std::string::npos);
  EXPECT_NE(error_with(pipeline("{NormalizeImage: {bgr_to_rgb: True}}")).find("are RGB already"),
            std::string::npos);
  EXPECT_NE(error_of(kMinimal,
                     {"eval.loader.batch_size=8", "eval.dataset.transform_pipeline=[" + flip + "]"})
                .find("is random"),
            std::string::npos);
}

TEST(Config, EvaluationReadsTheTrainingFolderUnlessToldOtherwise) {
  EXPECT_EQ(read(kMinimal, {"eval.loader.batch_size=8"}).eval->dataset.data_dirs.at(0), "d");
  EXPECT_EQ(read(kMinimal, {"eval.loader.batch_size=8", "eval.dataset.data_dir=e"})
                .eval->dataset.data_dirs.at(0),
            "e");
}

TEST(Config, EffectiveConfigurationIsWholeAndReadsBack) {
  const Config config = read(kMinimal, {"train.max_steps=12"});
  const std::string text = write_yaml(config.effective);
  EXPECT_NE(text.find("max_steps: 12\n"), std::string::npos);
  EXPECT_NE(text.find("ckpt_max_keep: 10\n"), std::string::npos);
  const Config again = read_config(parse_yaml(text, "args.yaml"));
  EXPECT_EQ(write_yaml(again.effective), text);
}

TEST(Config, EmptyOrForeignFiles) {
  EXPECT_NE(error_of("[1, 2]").find("the configuration must be a mapping, not a list"),
            std::string::npos);
  EXPECT_THROW(load_config("/nowhere/x.yaml"), Error);
}

TEST(Config, ARelativePathWithoutAFileIsThatOfAnInstalledRecipe) {
  namespace fs = std::filesystem;
  const TempFolder prefix;
  const fs::path recipes = prefix / "configs";
  const std::vector<fs::path> folders = {prefix / "none", recipes};
  fs::create_directories(recipes / "cls");
  std::ofstream(recipes / "cls/small.yaml") << kMinimal;
  EXPECT_EQ(find_recipe("cls/small.yaml", folders), recipes / "cls/small.yaml");
  EXPECT_EQ(find_recipe("configs/cls/small.yaml", folders), recipes / "cls/small.yaml");
  EXPECT_EQ(find_recipe("./configs/cls/small.yaml", folders), recipes / "cls/small.yaml");
  for (const char* other : {"cls/none.yaml", "cls", "/cls/small.yaml", ""}) {
    EXPECT_EQ(find_recipe(other, folders), other);
  }
  EXPECT_EQ(find_recipe("cls/small.yaml", {}), "cls/small.yaml");
  std::ofstream(prefix / "none.yaml") << kMinimal;
  EXPECT_EQ(find_recipe("../none.yaml", folders), "../none.yaml");
  // A file of one's own comes first.
  const auto own = fs::relative(recipes / "cls/small.yaml");
  EXPECT_EQ(find_recipe(own, folders), own);
}

TEST(Config, ARecipeThatIsNamedByItsFileAloneIsFoundInItsFolder) {
  namespace fs = std::filesystem;
  const TempFolder prefix;
  const fs::path recipes = prefix / "configs";
  const std::vector<fs::path> folders = {prefix / "none", recipes};
  fs::create_directories(recipes / "cls/resnet");
  std::ofstream(recipes / "cls/resnet/resnet50_cifar10.yaml") << kMinimal;
  std::ofstream(recipes / "cls/resnet/notes.txt") << "";
  const std::string meant = ", did you mean 'cls/resnet/resnet50_cifar10.yaml'?";
  for (const char* name : {"resnet50_cifar10.yaml", "resnet50_cifar10", "resnet50_cifr10",
                           "cls/resnet50_cifar10.yaml", "configs/cls/other/resnet50_cifar1.yaml"}) {
    EXPECT_EQ(nearest_recipe(name, folders), meant) << name;
  }
  for (const char* name : {"notes", "other.yaml", "", "/resnet50_cifar10.yaml"}) {
    EXPECT_EQ(nearest_recipe(name, folders), "") << name;
  }
  // As it is typed in the source tree.
  const std::vector<fs::path> source_tree = {fs::relative(recipes)};
  EXPECT_EQ(
      nearest_recipe("resnet50_cifar10", source_tree),
      ", did you mean '" + (source_tree[0] / "cls/resnet/resnet50_cifar10.yaml").string() + "'?");
}

}  // namespace
}  // namespace lockstep
