// Configurations, good and bad ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST_F(Program, CheckPrintsTheSummaryAndTouchesNothing) {
  const auto result = train(
      "--check -o train.max_steps=7 train.dataset.data_dir=nowhere "
      "train.dataset.sample_ratio=0.5 parallel.virtual_ranks=4",
      2);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto* text :
       {"max_steps: 7\n", "Model: mobilenet_v3_small\n", "Ranks: 2\n",
        "Samples: 25000 (12500 a rank), the official number",
        "Batch: 8 x 4 virtual ranks x 1 accumulated = 32\n", "Steps: 781 an epoch",
        "the data are not there yet", "7 optimizer steps in all"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

// Else an epoch's training is lost to a message without a cause.
TEST_F(Program, ALastBatchOfOneSampleIsNamedBeforeAndWhereItFails) {
  const std::string args = "-o train.loader.batch_size=33 train.loader.drop_remainder=";
  const std::string note = "the last batch of each epoch has one sample (100 are dealt in batches";
  const auto check = train("--check " + args + "False");
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_NE(check.err.find(note), std::string::npos) << check.err;
  const auto whole = train("--check " + args + "True");
  EXPECT_EQ(whole.err.find(note), std::string::npos) << whole.err;
  const auto run = train(args + "False");
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_NE(run.out.find(note), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("the batch has one sample, the last one of the epoch: Expected more than "
                         "1 value per channel"),
            std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("train.loader.drop_remainder: True"), std::string::npos) << run.err;
}

// 2 samples x (4 + 1) batches x (3 + 4) planes x 128 x 128 x 4 bytes: with its four maps.
TEST_F(Program, CheckCountsTheMapsOfADetectorsBatches) {
  const auto result =
      run(lockstep_program() + " train -c " + std::getenv("LOCKSTEP_SOURCE_DIR") +
          "/configs/det/dbnet/db_r18_synth.yaml --check -o train.loader.batch_size=2 "
          "train.loader.num_workers=1 train.loader.prefetch_size=4 "
          "\"train.dataset.transform_pipeline=[{DecodeImage: {img_mode: RGB}}, {DetLabelEncode: }, "
          "{RandomCropWithBBox: {crop_size: [128, 128]}}, {ValidatePolygons: }, {ShrinkBinaryMap: "
          "}, {BorderMap: }, {NormalizeImage: }, {ToCHWImage: }]\"");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find(" + batches 4.4 MiB;"), std::string::npos) << result.out;
}

// The numbers printed by MindSpore's tutorial.
TEST_F(Program, TheTutorialsRecipeHasItsSteps) {
  const std::string recipe = std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) +
                             "/configs/cls/resnet/resnet50_cifar10_tutorial.yaml";
  const auto result =
      run("env DATA_PATH=nowhere " + lockstep_program() + " run --nproc_per_node 8 -- " +
          lockstep_program() + " train --check --config " + recipe);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto* text :
       {"Samples: 60000 (7500 a rank), the official number", "Batch: 32 x 8 ranks x 1 accumulated",
        "Steps: 234 an epoch, 10 epochs, 2340 optimizer steps in all", " opt: momentum\n",
        " momentum: 0.9\n", " scheduler: constant\n", " lr: 0.01\n", " usage: all\n"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
}

TEST_F(Program, TheHelpOfAVerbHasWhatItTakes) {
  for (const bool evaluates : {false, true}) {
    const auto help = run(lockstep_program() + (evaluates ? " eval --help" : " train --help"));
    EXPECT_EQ(help.status, 0) << help.err;
    for (const char* own : {"--config FILE", "--opt ", "--plugin FILE", "--list ", "--help "}) {
      EXPECT_NE(help.out.find(own), std::string::npos) << own << "\n" << help.out;
    }
    for (const char* of_train : {"--check ", "--eval ", "--find_lr "}) {
      EXPECT_EQ(help.out.find(of_train) == std::string::npos, evaluates) << of_train;
    }
  }
}

struct BadInput {
  const char* args;
  int status;
  const char* message;
};

TEST_F(Program, BadInputIsOneClearLineAndWritesNothing) {
  write_file_atomically(folder_ / "broken.yaml", std::string_view("system:\n  seed: [1\n"));
  write_file_atomically(folder_ / "empty.yaml", std::string_view(""));
  fs::create_directory(folder_ / "cut");
  write_file_atomically(folder_ / "cut/data_batch_1.bin", std::string_view("x"));
  fs::create_directory(folder_ / "cut_test");
  write_file_atomically(folder_ / "cut_test/test_batch.bin", std::string_view("x"));
  write_file_atomically(folder_ / "file", std::string_view("x"));
  write_file_atomically(folder_ / "resnet.yaml", config_of(kResnet18));
  fs::create_directory(folder_ / "bad");
  write_file_atomically(folder_ / "bad/state.json", std::string_view("{"));
  const std::vector<BadInput> table = {
      {"train", 2, "lockstep train: error: -c, --config FILE is needed"},
      {"train -c c.yaml --chek", 2, "--chek"},
      {"train -c", 2, "lockstep train: error: -c needs a value (FILE)"},
      {"train -c none.yaml", 2, "none.yaml"},
      {"train -c broken.yaml", 2, "broken.yaml:"},
      {"train -c empty.yaml", 2, "empty.yaml is empty"},
      {"train -c data", 2, "data is a folder"},
      {"train -c c.yaml -o train.max_step=1", 2, "did you mean"},
      {"train -c resnet.yaml -o model.backbone.name=resnet19", 2, "did you mean"},
      {"train -c c.yaml -o model.head.num_classes=3", 2, "have 10 classes"},
      {"train -c c.yaml -o train.dataset.data_dir=nowhere", 2, "nowhere"},
      {"train -c c.yaml -o train.dataset.data_dir=cut", 2, "data_batch_1.bin"},
      {"train -c c.yaml -o train.loader.batch_size=1000", 2, "no batch"},
      {"train -c c.yaml -o parallel.backend=nativ", 2, "nativ"},
      {"train -c c.yaml -o parallel.shards=3", 2, "did you mean 'virtual_ranks'?"},
      {"train -c c.yaml -o parallel.virtual_ranks=3 parallel.broadcast_buffers=False", 2,
       "broadcast_buffers"},
      {"train -c c.yaml -o model.resume=bad", 2, "state.json"},
      {"train -c c.yaml -o model.pretrained=none.safetensors", 2, "none.safetensors"},
      {"train -c c.yaml -o train.ckpt_save_dir=file/out", 2, "file is no folder"},
      {"train -c c.yaml --check -o train.ckpt_save_dir=file/out", 2, "train.ckpt_save_dir"},
      {"train -c c.yaml --eval", 2, "out"},
      {"eval -c c.yaml", 2, "out"},
      {"eval -c c.yaml --check", 2, "lockstep eval: error: unknown option '--check'"},
      {"eval -c c.yaml --find_lr 20", 2, "lockstep eval: error: unknown option '--find_lr'"},
      {"train --eval -c c.yaml --check", 2, "lockstep eval: error: unknown option '--check'"},
      {"train -c c.yaml --check --eval", 2, "--check does not go with --eval"},
      {"train -c c.yaml --check -o parallel.backend=nativ", 2, "nativ"},
      {"train -c c.yaml --check -o model.head.num_classes=3", 2, "have 10 classes"},
      {"train -c c.yaml --check -o train.loader.batch_size=100000", 2, "no batch"},
      {"train -c c.yaml --check -o train.dataset.data_dir=nowhere train.loader.batch_size=100000",
       2, "no batch"},
      {"train -c c.yaml --check -o scheduler.scheduler=multi_step_decay", 2, "milestones"},
      {"train -c c.yaml --check -o model.resume=/nope", 2, "/nope"},
      {"train -c c.yaml --check -o model.resume=bad", 2, "state.json"},
      {"train -c c.yaml --check -o train.dataset.data_dir=cut", 2, "has 1 of 3073 bytes"},
      {"train -c c.yaml --check -o eval.dataset.data_dir=cut_test", 2, "cut_test/test_batch.bin"},
      {"trian -c c.yaml", 2, "did you mean"},
  };
  for (const auto& bad : table) {
    const auto result = run(lockstep_program() + " " + bad.args);
    EXPECT_EQ(result.status, bad.status) << bad.args << "\n" << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << bad.args << "\n"
                                                                         << result.err;
    EXPECT_NE(result.err.find(bad.message), std::string::npos) << bad.args << "\n" << result.err;
    EXPECT_FALSE(fs::exists(folder_ / "out")) << bad.args;
  }
}

TEST_F(Program, ShippedConfigurationsAreGood) {
  const fs::path configs = fs::path(std::getenv("LOCKSTEP_SOURCE_DIR")) / "configs/cls/resnet";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(configs)) {
    const auto result = run(lockstep_program() + " train --check -c=" + entry.path().string());
    EXPECT_EQ(result.status, 0) << entry.path() << result.err;
    ++count;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace lockstep
