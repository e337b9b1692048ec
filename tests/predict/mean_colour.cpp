// A network, a data set and transforms of one's own, for the tests of `lockstep predict` and
// `lockstep export`: a shared library for --plugin, and a program.

#include <lockstep/train.h>
#include <torch/torch.h>

#include <stdexcept>

namespace {

/// Scores of a picture's mean colour.
class MeanColour final : public lockstep::Model {
 public:
  MeanColour(int64_t classes, int64_t outputs, bool by_name)
      : outputs_(outputs), by_name_(by_name) {
    layer_ = register_module("layer", torch::nn::Linear(3, classes));
  }
  lockstep::Tensors compute(const lockstep::Tensors& inputs) override {
    const auto& picture = by_name_ ? inputs["picture"] : inputs[0];
    const auto mean = torch::adaptive_avg_pool2d(picture, {1, 1}).flatten(1);
    return lockstep::Tensors(static_cast<size_t>(outputs_), layer_->forward(mean));
  }

 private:
  int64_t outputs_;
  bool by_name_;
  torch::nn::Linear layer_{nullptr};
};

/// Black pictures of 8 x 8 pixels.
class BlackPictures final : public lockstep::BatchMaker {
 public:
  explicit BlackPictures(bool named) : named_(named) {}
  int64_t size() const override { return 4; }
  lockstep::Batch make(const lockstep::BatchRows& rows) const override {
    const auto count = static_cast<int64_t>(rows.samples.size());
    lockstep::Batch batch{
        torch::zeros({count, 3, 8, 8}), {torch::zeros({count}, torch::kInt64)}, rows.num_counted};
    if (named_) batch.images_name = "picture";
    return batch;
  }

 private:
  bool named_;
};

const lockstep::NetworkPart kMeanColour(
    "mean_colour", "a linear layer on the mean colour", [](lockstep::Section& settings) {
      int64_t outputs = 1, more_classes = 0;
      settings.read("outputs", outputs, {1, 9}, "of the network, all equal");
      settings.read("more_classes", more_classes, {0, 9}, "than there are");
      bool by_name = false;
      settings.read("by_name", by_name, "takes its input by name");
      return [=](int64_t classes) {
        return std::make_shared<MeanColour>(classes + more_classes, outputs, by_name);
      };
    });

const lockstep::DatasetPart kBlackPictures("black_pictures", "without a file",
                                           [](lockstep::Section& settings) {
                                             bool named = false;
                                             settings.read("named", named, "names its input");
                                             return [=](const lockstep::DatasetUse&) {
                                               return std::make_unique<const BlackPictures>(named);
                                             };
                                           });

const lockstep::TransformPart kLandscape(
    "Landscape", "refuses upright pictures", [](lockstep::Section&) {
      return [](lockstep::Picture& picture) {
        if (picture.width() >= picture.height()) return;
        throw lockstep::Error(lockstep::ErrorCode::kInvalidArgument, "it is upright");
      };
    });

const lockstep::TransformPart kFailing("Failing", "fails always", [](lockstep::Section&) {
  return [](lockstep::Picture&) { throw std::out_of_range("no such row"); };
});

const lockstep::TransformPart kBlack("Black", "leaves nothing", [](lockstep::Section&) {
  return [](lockstep::Picture& picture) {
    for (uint8_t& byte : picture.bytes()) byte = 0;
  };
});

}  // namespace

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
