// This program registers parts for text. A detector gets a data set, a backbone, a loss and a
// metric, which examples/own_text_parts.yaml names. A recogniser gets a backbone, a whole network,
// a loss and a metric.
//
// The detector finds bright bars in noise. As a shared library, this file works with the ready
// program, too: lockstep train --plugin libown_text_parts_plugin.so.

#include <lockstep/train.h>
#include <torch/torch.h>

#include <algorithm>
#include <utility>

namespace {

using lockstep::Batch;
using lockstep::BatchRows;
using lockstep::EvalResult;
using lockstep::Section;
using lockstep::Tensors;
using lockstep::TextPicture;

constexpr int64_t kSide = 64;  // pixels of a picture

/// A bar, as text would be: its place depends on the number of the picture.
struct Bar {
  int64_t left, top, width, height = 16;

  explicit Bar(int64_t number)
      : left(4 + number * 5 % 16), top(4 + number * 11 % 40), width(28 + number * 3 % 16) {}
  void fill(const torch::Tensor& picture, int64_t inset, double value) const {
    picture.narrow(-2, top + inset, height - 2 * inset)
        .narrow(-1, left + inset, width - 2 * inset)
        .fill_(value);
  }
  lockstep::TextPolygon polygon() const {
    const auto x = static_cast<float>(left), y = static_cast<float>(top);
    const auto right = x + static_cast<float>(width), low = y + static_cast<float>(height);
    return {{{x, y}, {right, y}, {right, low}, {x, low}}};
  }
};

/// Pictures with a bar each. DBNet learns bars that are shrunk, and their borders.
class Bars final : public lockstep::BatchMaker {
 public:
  Bars(int64_t pictures, const lockstep::DatasetUse& use) : pictures_(pictures), use_(use) {}
  int64_t size() const override { return pictures_; }

  Batch make(const BatchRows& rows) const override {
    const auto count = static_cast<int64_t>(rows.samples.size());
    Batch batch{torch::empty({count, 3, kSide, kSide}), {}, rows.num_counted};
    const auto text = torch::zeros({count, 1, kSide, kSide}),
               ones = torch::ones({count, kSide, kSide});
    const auto borders = torch::zeros({count, kSide, kSide});
    std::vector<TextPicture> truth(rows.samples.size());
    for (size_t i = 0; i < rows.samples.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      const Bar bar(2 * rows.samples[i] + (use_.training ? 0 : 1));
      batch.images[row].copy_(noise(rows.epoch, rows.random_keys()[i]));
      bar.fill(batch.images[row], 0, 1);
      bar.fill(text[row], 4, 1);
      bar.fill(borders[row], 0, 1);
      bar.fill(borders[row], 4, 0);
      truth[i].truth = {bar.polygon()};
    }
    if (use_.training) {
      batch.targets = {text, ones, 0.3 + 0.4 * borders, borders};
    } else {
      lockstep::set_text_pictures(batch, std::move(truth));
    }
    return batch;
  }

 private:
  /// It depends on seed, epoch and key alone: so the ranks do not show.
  torch::Tensor noise(int64_t epoch, int64_t key) const {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(
        use_.seed + static_cast<uint64_t>(epoch * pictures_ + key));
    return torch::rand({3, kSide, kSide}, generator) * 0.5;
  }

  int64_t pictures_;
  lockstep::DatasetUse use_;
};

const lockstep::DatasetPart kBars("bars", "pictures with a bar each", [](Section& settings) {
  int64_t pictures = 64;
  settings.read("pictures", pictures, {1, 1 << 20}, "of an epoch");
  return
      [=](const lockstep::DatasetUse& use) { return std::make_unique<const Bars>(pictures, use); };
});

/// For a detector: four maps, with 4, 8, 16 and 32 pixels of the image to a place.
class SmallMaps final : public lockstep::Backbone {
 public:
  explicit SmallMaps(int64_t width) : width_(width) {
    for (size_t i = 0; i < 4; ++i) {
      const int64_t in = i == 0 ? 3 : width << (i - 1), kernel = i == 0 ? 8 : 4;
      stages_->push_back(
          torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, width << i, kernel)
                                                      .stride(kernel / 2)
                                                      .padding(kernel / 4)
                                                      .bias(false)),
                                torch::nn::BatchNorm2d(width << i), torch::nn::ReLU()));
    }
  }
  Tensors features(torch::Tensor map) override {
    Tensors maps;
    for (const auto& stage : *stages_) {
      map = stage->as<torch::nn::Sequential>()->forward(map);
      maps.push_back(map);
    }
    return maps;
  }
  std::vector<int64_t> feature_channels() const override {
    return {width_, 2 * width_, 4 * width_, 8 * width_};
  }

 private:
  int64_t width_;
  torch::nn::ModuleList stages_ = register_module("stages", torch::nn::ModuleList());
};

const lockstep::BackbonePart kSmallMaps("small_maps", "four convolutions", [](Section& settings) {
  int64_t width = 16;
  settings.read("width", width, {1, 512}, "channels of the first map");
  return [=] { return std::make_shared<SmallMaps>(width); };
});

/// For a recogniser: one map, a column for each four columns of an image of 32 rows.
class SmallColumns final : public lockstep::Backbone {
 public:
  Tensors features(torch::Tensor image) override { return {layers_->forward(image)}; }
  std::vector<int64_t> feature_channels() const override { return {64}; }

 private:
  torch::nn::Sequential layers_ = register_module(
      "layers",
      torch::nn::Sequential(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 4).stride(4)), torch::nn::ReLU(),
          torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, {8, 1})), torch::nn::ReLU()));
};

const lockstep::BackbonePart kSmallColumns("small_columns", "two convolutions", [](Section&) {
  return [] { return std::make_shared<SmallColumns>(); };
});

/// A whole recogniser of images of 32 rows: classes of each four columns.
class ColumnReader final : public lockstep::Model {
 public:
  ColumnReader(int64_t width, int64_t classes)
      : columns_(register_module(
            "columns",
            torch::nn::Sequential(
                torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, {32, 4}).stride({32, 4})),
                torch::nn::ReLU()))),
        scores_(register_module("scores", torch::nn::Linear(width, classes))) {}
  torch::Tensor forward(torch::Tensor image) override {
    const auto columns = columns_->forward(image).squeeze(2).permute({2, 0, 1});  // (T, N, width)
    const auto logits = scores_->forward(columns);
    return is_training() ? logits : logits.softmax(2).transpose(0, 1);
  }

 private:
  torch::nn::Sequential columns_;
  torch::nn::Linear scores_;
};

const lockstep::NetworkPart kReader("column_reader", "reads by columns", [](Section& settings) {
  int64_t width = 64;
  settings.read("width", width, {1, 512}, "numbers for each column");
  return [=](int64_t classes) { return std::make_shared<ColumnReader>(width, classes); };
});

/// Dice of the first map, with the mean error of the second one on borders.
torch::Tensor dice_and_border(const torch::Tensor& maps, const Tensors& targets, double border) {
  const auto binary = maps.select(1, 0), text = targets[0].select(1, 0);
  const auto dice = 1 - 2 * (binary * text).sum() / (binary.sum() + text.sum() + 1);
  const auto wrong = ((maps.select(1, 1) - targets[2]).abs() * targets[3]).sum();
  const auto on_border = wrong / (targets[3].sum() + 1);
  lockstep::log_value("dice", dice);
  lockstep::log_value("border", on_border);
  return dice + border * on_border;
}

const lockstep::LossPart kDice("dice_and_border", "of a detector", [](Section& settings) {
  double border = 1;
  settings.read("border", border, {0, 100}, "weight of the borders");
  const auto loss = [=](const Tensors& outputs, const Tensors& targets) {
    return dice_and_border(outputs[0], targets, border);
  };
  return lockstep::LoggedLoss(loss, {"dice", "border"});
});

const lockstep::LossPart kCtc("ctc_a_letter", "CTC, divided by the letters", [](Section&) {
  return [](const Tensors& outputs, const Tensors& targets) {
    const auto& logits = outputs[0];
    const int64_t blank = logits.size(2) - 1;
    const auto frames = torch::full({logits.size(1)}, logits.size(0), torch::kLong);
    const auto letters = targets[0].lt(blank).sum(1).cpu();
    return torch::ctc_loss(logits.log_softmax(2), targets[0].to(torch::kLong), frames, letters,
                           blank, at::Reduction::Mean, /*zero_infinity=*/true);
  };
});

/// The share of the pictures for which `right` is true.
class Share final : public lockstep::Metric {
 public:
  using Right = bool (*)(const TextPicture& picture);
  Share(std::string name, Right right) : name_(std::move(name)), right_(right) {}

  std::vector<std::string> metric_names() const override { return {name_}; }
  size_t num_sums() const override { return 2; }
  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    const auto& pictures = lockstep::text_pictures(batch);
    const auto right = std::count_if(pictures.begin(), pictures.end(), right_);
    return {static_cast<double>(pictures.size()), static_cast<double>(right)};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.metrics = {{name_, sums[1] / std::max(1.0, sums[0])}};
    return result;
  }

 private:
  std::string name_;
  Right right_;
};

const lockstep::MetricPart kCounted("counted", "pictures with as many pieces found as there are",
                                    [](Section&) {
                                      return [](int64_t) {
                                        return std::make_unique<Share>(
                                            "counted", [](const TextPicture& picture) {
                                              return picture.found.size() == picture.truth.size();
                                            });
                                      };
                                    });

const lockstep::MetricPart kLengths("lengths", "words of the right length", [](Section&) {
  return [](int64_t) {
    return std::make_unique<Share>("lengths", [](const TextPicture& picture) {
      return picture.read.size() == picture.label.size();
    });
  };
});

}  // namespace

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
