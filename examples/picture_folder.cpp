// Training from C++ without a file: a network of one's own, a built-in loss with one more term, and
// a built-in data set. The pictures lie in a folder for each class, as FOLDER/cat/1.jpg.
// usage: picture_folder FOLDER RESULTS

#include <lockstep/error.h>
#include <lockstep/train.h>
#include <torch/torch.h>

#include <string>

namespace {

class Net final : public lockstep::Model {
 public:
  explicit Net(int64_t classes) {
    using torch::nn::Conv2d, torch::nn::Conv2dOptions, torch::nn::ReLU;
    layers_ = register_module(
        "layers", torch::nn::Sequential(Conv2d(Conv2dOptions(3, 8, 3).stride(2)), ReLU(),
                                        Conv2d(Conv2dOptions(8, 16, 3).stride(2)), ReLU(),
                                        torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(),
                                        torch::nn::Linear(16, classes)));
  }
  torch::Tensor forward(torch::Tensor input) override { return layers_->forward(input); }

 private:
  torch::nn::Sequential layers_{nullptr};
};

int run(int argc, char** argv) {
  if (argc != 3)
    throw lockstep::Error(lockstep::ErrorCode::kInvalidArgument,
                          "usage: picture_folder FOLDER RESULTS");
  const std::string pictures = argv[1], results = argv[2];
  lockstep::Recipe recipe;
  recipe.name = "small_convs";
  recipe.network = [](int64_t classes) { return std::make_shared<Net>(classes); };
  recipe.num_classes = 2;
  const auto focal = lockstep::make_part(lockstep::losses(), "FocalLoss", {"gamma=1"}).function;
  recipe.loss = [focal](const lockstep::Tensors& outputs, const lockstep::Tensors& targets) {
    return focal(outputs, targets) + 0.01 * outputs[0].square().mean();
  };
  recipe.settings = {
      "train.dataset.type=ImageFolderDataset",
      "train.dataset.data_dir=" + pictures,
      "train.dataset.transform_pipeline=[{RandomResizedCrop: {size: 32}}, {NormalizeImage: }]",
      "train.ckpt_save_dir=" + results,
      "train.loader.batch_size=4",
      "scheduler.num_epochs=2",
      "scheduler.warmup_epochs=0",
      "parallel.virtual_ranks=2"};
  return lockstep::train(recipe, lockstep::World::join());
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("picture_folder", run, argc, argv);
}
