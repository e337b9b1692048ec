// lockstep export, the real program.

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <regex>

#include "lockstep/base/file.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"
#include "tests/predict/configs.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

class ExportProgram : public ::testing::Test {
 protected:
  ExportProgram() {
    write_file_atomically(folder_ / "cls.yaml", testing::cls_yaml());
    model_ = make_model(load_config(folder_ / "cls.yaml").model, 1);
    save_tensors(folder_ / "w.safetensors", module_tensors(*model_));
  }

  /// Returns the exit status.
  int run(const std::string& args, const std::string& config = "cls.yaml") const {
    const std::string line = "cd " + folder_.path().string() + " && timeout 100 " +
                             std::getenv("LOCKSTEP_BIN_DIR") + "/lockstep export -c " + config +
                             " " + args + " >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string plugin() {
    return std::string(" --plugin ") + std::getenv("LOCKSTEP_BIN_DIR") +
           "/lockstep_mean_colour.so ";
  }
  std::string text_of(const std::string& file) const { return read_file(folder_ / file); }

  TempFolder folder_;
  std::shared_ptr<Model> model_;
};

TEST_F(ExportProgram, WritesWeightsUnderTorchvisionsNames) {
  ASSERT_EQ(run("--weights w.safetensors --output out.safetensors"), 0) << text_of("stderr.txt");
  const auto [tensors, metadata] = load_tensors(folder_ / "out.safetensors");
  EXPECT_EQ(metadata, (StoredMetadata{{"format", "pt"}, {"model", "resnet18-None-ClsHead"}}));
  const auto own = module_tensors(*model_);
  ASSERT_EQ(tensors.size(), own.size());
  for (const auto& [name, tensor] : own) EXPECT_TRUE(at::equal(tensors.at(name), tensor)) << name;
  EXPECT_TRUE(text_of("stdout.txt").starts_with("out.safetensors: resnet18-None-ClsHead with "));
}

TEST_F(ExportProgram, WritesOnnxForTheSizeOfItsPictures) {
  ASSERT_EQ(run("--weights w.safetensors --output out.onnx"), 0) << text_of("stderr.txt");
  EXPECT_NE(text_of("out.onnx").find("layer4.1.conv2.weight"), std::string::npos);
}

TEST_F(ExportProgram, KnowsANetworkOfAPlugin) {
  write_file_atomically(folder_ / "own.yaml", testing::own_network_yaml());
  write_file_atomically(folder_ / "own_data.yaml", testing::own_data_yaml());
  const TensorMap weights = {{"layer.weight", at::ones({3, 3})}, {"layer.bias", at::zeros({3})}};
  save_tensors(folder_ / "own.safetensors", weights, {{"format", "pt"}, {"model", "mean_colour"}});
  const std::string args = plugin() + "--weights own.safetensors --output ";
  ASSERT_EQ(run(args + "own_out.safetensors", "own.yaml"), 0) << text_of("stderr.txt");
  EXPECT_EQ(text_of("stdout.txt"),
            "own_out.safetensors: mean_colour with 12 parameters, from own.safetensors\n");
  EXPECT_EQ(text_of("own_out.safetensors"), text_of("own.safetensors"));
  ASSERT_EQ(run(args + "own.onnx", "own.yaml"), 0) << text_of("stderr.txt");
  // Of its own data set only a sample tells the sizes.
  ASSERT_EQ(run(args + "own_data.onnx", "own_data.yaml"), 0) << text_of("stderr.txt");
  EXPECT_NE(text_of("own_data.onnx").find("layer.weight"), std::string::npos);
  EXPECT_EQ(run(args + "named.onnx -o eval.dataset.named=True", "own_data.yaml"), 2);
  EXPECT_NE(
      text_of("stderr.txt").find("a sample's input has the name 'picture': that of an .onnx "),
      std::string::npos)
      << text_of("stderr.txt");
  EXPECT_EQ(run("--weights own.safetensors --output x.onnx", "own.yaml"), 2);
  EXPECT_NE(text_of("stderr.txt").find("not 'mean_colour'; --plugin FILE adds networks"),
            std::string::npos)
      << text_of("stderr.txt");
}

TEST_F(ExportProgram, ASizeLeavesTheChannelsAsTheyWereTrained) {
  const std::string grey =
      std::regex_replace(testing::own_network_yaml(), std::regex("Cifar10Dataset"), "MnistDataset");
  write_file_atomically(folder_ / "grey.yaml", std::string_view(grey));
  const TensorMap weights = {{"layer.weight", at::ones({3, 3})}, {"layer.bias", at::zeros({3})}};
  save_tensors(folder_ / "own.safetensors", weights);
  const std::string args = plugin() + "--weights own.safetensors --output grey.onnx --size 28 ";
  ASSERT_EQ(run(args, "grey.yaml"), 0) << text_of("stderr.txt");
  // The network takes three channels alone.
  EXPECT_NE(run(args + "-o train.dataset.channels=1", "grey.yaml"), 0);
  EXPECT_NE(text_of("stderr.txt").find("(7x1 and 3x3)"), std::string::npos)
      << text_of("stderr.txt");
}

TEST_F(ExportProgram, BadInputIsOneLine) {
  EXPECT_EQ(run("--weights w.safetensors --output none/out.onnx"), 2);
  EXPECT_NE(text_of("stderr.txt").find("none/out.onnx cannot be written: there is no folder none"),
            std::string::npos)
      << text_of("stderr.txt");
  EXPECT_EQ(run("--weights w.safetensors --output out.pb"), 2);
  EXPECT_EQ(text_of("stderr.txt"),
            "lockstep export: error: --output must end in .onnx, .safetensors or .ckpt, unlike "
            "'out.pb'\n");
  EXPECT_EQ(run("--weights none.pth --output out.onnx"), 2);
  EXPECT_NE(text_of("stderr.txt").find("none.pth"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
