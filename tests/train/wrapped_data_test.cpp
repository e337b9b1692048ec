// Data sets of one's own that take built-in ones as parts.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/data/pixel_form.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/part_makers.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task_parts.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Another's batches, with the mean of each image as a second input.
class WithMeans final : public BatchMaker {
 public:
  explicit WithMeans(std::unique_ptr<const BatchMaker> base) : base_(std::move(base)) {}
  int64_t size() const override { return base_->size(); }
  Batch make(const BatchRows& rows) const override {
    Batch batch = base_->make(rows);
    batch.more_inputs.add("mean", batch.images.mean(at::IntArrayRef{1, 2, 3}));
    return batch;
  }

 private:
  std::unique_ptr<const BatchMaker> base_;
};

/// Another's batches, of which samples that are left out count, too.
class CountsAll final : public BatchMaker {
 public:
  explicit CountsAll(std::unique_ptr<const BatchMaker> base) : base_(std::move(base)) {}
  int64_t size() const override { return base_->size(); }
  Batch make(const BatchRows& rows) const override {
    Batch batch = base_->make(rows);
    batch.valid = rows.num_counted;
    return batch;
  }

 private:
  std::unique_ptr<const BatchMaker> base_;
};

/// Adds it once the makers of built-in parts are there: its settings are those of one.
void register_with_means() {
  static const bool is_added = [] {
    register_built_in_parts();
    datasets().add(
        {.name = "with_means", .about = "another's, and means", .read = [](Section& settings) {
           Section base = settings.section("base");
           std::string type = "Cifar10Dataset";
           base.read("type", type, "the other one");
           const auto made = datasets().read(type, base);
           base.finish();
           return [made](const DatasetUse& use) {
             return std::make_unique<const WithMeans>(made(use));
           };
         }});
    return true;
  }();
  ASSERT_TRUE(is_added);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  if (a.scalar_type() != at::kFloat) return at::equal(a, b);
  return at::equal(a.contiguous().view(at::kInt), b.contiguous().view(at::kInt));
}

/// Random bytes, the same ones for one seed.
std::string bytes_of_seed(size_t count, uint64_t seed) {
  cv::Mat bytes(1, static_cast<int>(count), CV_8U);
  cv::RNG(seed + 1).fill(bytes, cv::RNG::UNIFORM, 0, 256);
  return {reinterpret_cast<const char*>(bytes.data), count};
}

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

/// A member of a tar archive, in the form ustar.
std::string tar_member(const std::string& name, const std::string& bytes) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& field) {
    header.replace(at, field.size(), field);
  };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", bytes.size()));
  put(136, fmt::format("{:011o}", 0));
  put(148, std::string(8, ' '));
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  uint32_t sum = 0;
  for (const char byte : header) sum += static_cast<uint8_t>(byte);
  put(148, fmt::format("{:06o}", sum) + '\0');
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

/// Data of every kind that a classifier has, and of a detector.
class WrappedData : public ::testing::Test {
 protected:
  WrappedData() {
    register_with_means();
    write_cifar("data_batch_1.bin", 6);
    write_cifar("test_batch.bin", 4);
    write_mnist("train", 6);
    write_mnist("t10k", 4);
    write_pictures();
  }

  /// `steps`: of transform_pipeline.
  std::string section(const std::string& type, const std::string& keys,
                      const std::string& steps) const {
    return fmt::format("{{type: {}, dataset_root: {}, {}, transform_pipeline: [{}]}}", type,
                       folder_.path().string(), keys, steps);
  }
  static std::string wrapped(const std::string& base) {
    return "{type: with_means, base: " + base + "}";
  }
  static Config config_with(const std::string& train, const std::string& eval) {
    return read_text(kPictures,
                     {"train.dataset=" + train, "eval.dataset=" + eval, "system.seed=7"});
  }

  /// Of three samples, drawn with keys in training. In evaluation a row of padding follows.
  static Batch three_of(const Config& config, bool training, int64_t* size) {
    DataParts data;
    const auto maker = task_parts(config).make_batches(config, training, PixelForm::kFloats, data);
    *size = data.samples;
    const std::vector<int64_t> samples = {2, 0, 1, 2}, keys = {5, 9, 7, 5};
    if (training) return maker->make({3, samples, 4, keys});
    return maker->make({3, samples, 3});
  }
  static void expect_same_batches(const Config& built_in, const Config& own, bool training) {
    SCOPED_TRACE(training ? "training" : "evaluation");
    int64_t size = 0, own_size = 0;
    const auto batch = three_of(built_in, training, &size);
    const auto own_batch = three_of(own, training, &own_size);
    EXPECT_EQ(own_size, size);
    EXPECT_TRUE(same_bits(own_batch.images, batch.images));
    ASSERT_EQ(own_batch.targets.size(), batch.targets.size());
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      EXPECT_TRUE(same_bits(own_batch.targets[i], batch.targets[i])) << i;
    }
    EXPECT_EQ(own_batch.valid, batch.valid);
    EXPECT_EQ(own_batch.faults, batch.faults);
    EXPECT_EQ(own_batch.more_inputs["mean"].numel(), batch.images.size(0));
  }
  /// `train`, `eval`: the built-in data set of each section.
  static void expect_same(const std::string& train, const std::string& eval) {
    SCOPED_TRACE(train);
    const auto built_in = config_with(train, eval);
    const auto own = config_with(wrapped(train), wrapped(eval));
    expect_same_batches(built_in, own, true);
    expect_same_batches(built_in, own, false);
  }
  /// The error of a registered data set in section `train`, without the place.
  static std::string fault_of(const std::string& base, const std::string& use = "train") {
    const auto item = use + ".dataset=" + wrapped(base), place = "-o " + item + ": ";
    const auto other = (use == "train" ? "eval" : "train") + std::string(".dataset=") +
                       wrapped("{type: Cifar10Dataset, data_dir: d}");
    const auto text = fault_in(kPictures, {other, item});
    return text.starts_with(place) ? text.substr(place.size()) : text;
  }
  std::string path() const { return folder_.path().string(); }

 private:
  void write_cifar(const std::string& file, int count) const {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      bytes += static_cast<char>(i % 10) + bytes_of_seed(3 * 32 * 32, file.size() + i);
    }
    fs::create_directories(folder_ / "cifar");
    write_file_atomically(folder_ / "cifar" / file, std::string_view(bytes));
  }
  void write_mnist(const std::string& part, uint32_t count) const {
    const fs::path folder = folder_ / "mnist";
    fs::create_directories(folder);
    const auto images = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28) +
                        bytes_of_seed(size_t{count} * 28 * 28, count);
    auto labels = big_endian(0x801) + big_endian(count);
    for (uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i);
    write_file_atomically(folder / (part + "-images-idx3-ubyte"), std::string_view(images));
    write_file_atomically(folder / (part + "-labels-idx1-ubyte"), std::string_view(labels));
  }
  /// A folder of two classes, a list and an archive of its pictures, and polygons in them.
  void write_pictures() const {
    std::string list, archive, polygons;
    for (int i = 0; i < 12; ++i) {
      const int label = i % 2;
      const auto name = fmt::format("photos/{}/{:02}.png", label == 0 ? "cat" : "dog", i);
      fs::create_directories((folder_ / name).parent_path());
      cv::Mat picture(60 + i, 70, CV_8UC3);
      cv::RNG(static_cast<uint64_t>(i) + 1).fill(picture, cv::RNG::UNIFORM, 0, 256);
      cv::imwrite((folder_ / name).string(), picture);
      list += fmt::format("{},{}\n", name, label);
      archive += tar_member(fmt::format("{:02}.png", i), read_file(folder_ / name)) +
                 tar_member(fmt::format("{:02}.cls", i), std::to_string(label));
      polygons += name +
                  "\t[{\"transcription\": \"a\", \"points\": [[20, 20], [50, 20], [50, 50], [20, "
                  "50]]}]\n";
    }
    write_file_atomically(folder_ / "list.csv", std::string_view(list));
    write_file_atomically(folder_ / "shard.tar", archive + std::string(1024, '\0'));
    write_file_atomically(folder_ / "scenes.txt", std::string_view(polygons));
  }

  const TempFolder folder_;
};

TEST(WrappedDataSets, AreListedWithTheSettingsOfTheOther) {
  register_with_means();
  const auto text = list_parts("datasets");
  EXPECT_NE(
      text.find(
          "\n  with_means: another's, and means\n    base.type: the other one; a text; default "
          "Cifar10Dataset\n    base.dataset_root: "),
      std::string::npos)
      << text;
}

TEST_F(WrappedData, OfSmallImagesHaveTheBatchesOfTheTrainer) {
  const std::string random = "{RandomCrop: {size: 32, padding: 4}}, {RandomHorizontalFlip: }";
  expect_same(section("Cifar10Dataset", "data_dir: cifar", random + ", {Normalize: }"),
              section("Cifar10Dataset", "data_dir: cifar", "{Normalize: }"));
  expect_same(section("Cifar10Dataset", "data_dir: cifar, sample_ratio: 0.5", ""),
              section("Cifar10Dataset", "data_dir: cifar, usage: all", ""));
  const std::string one = "{Normalize: {mean: [0.5], std: [0.5]}}";
  for (const std::string type : {"MnistDataset", "FashionMnistDataset"}) {
    expect_same(section(type, "data_dir: mnist, channels: 1", "{RandomCrop: {size: 28}}, " + one),
                section(type, "data_dir: mnist, channels: 1", one));
  }
}

TEST_F(WrappedData, OfPicturesHaveTheBatchesOfTheTrainer) {
  const std::string random =
      "{RandomResizedCrop: {size: 16}}, {RandomHorizontalFlip: }, {NormalizeImage: }";
  const std::string plain = "{Resize: {size: [16, 16]}}, {NormalizeImage: }";
  const std::string folder = "data_dir: photos", list = "data_dir: ., label_file: list.csv";
  expect_same(section("ImageFolderDataset", folder, random),
              section("ImageFolderDataset", folder, plain));
  expect_same(section("ImageFolderDataset", folder + ", held_out: 2", random),
              section("ImageFolderDataset", folder + ", held_out: 2", plain));
  expect_same(section("ImageListDataset", list + ", sample_ratio: 0.5", random),
              section("ImageListDataset", list, plain));
  expect_same(section("WebDataset", "shards: shard.tar", random),
              section("WebDataset", "shards: shard.tar", plain));
}

TEST_F(WrappedData, OfTextHaveTheBatchesOfTheTrainer) {
  const auto base = section(
      "DetDataset",
      "data_dir: ., label_file: scenes.txt, net_input_column_index: [0], label_column_index: [1, "
      "2, 3, 4], output_columns: [image, binary_map, mask, thresh_map, thresh_mask]",
      "{DecodeImage: {img_mode: RGB}}, {DetLabelEncode: }, {RandomCropWithBBox: {crop_size: [64, "
      "64], p: 1.0}}, {ShrinkBinaryMap: }, {BorderMap: }, {NormalizeImage: }, {ToCHWImage: }");
  const auto eval =
      section("DetDataset", "data_dir: ., label_file: scenes.txt",
              "{DecodeImage: {img_mode: RGB}}, {DetLabelEncode: }, {DetResize: {target_size: [64, "
              "64], keep_ratio: False}}, {NormalizeImage: }, {ToCHWImage: }");
  const auto config = [](const std::string& train, const std::string& evaluated) {
    return read_text(kDetector, {"train.dataset=" + train, "eval.dataset=" + evaluated,
                                 "eval.loader.batch_size=4"});
  };
  const auto built_in = config(base, eval), own = config(wrapped(base), wrapped(eval));
  expect_same_batches(built_in, own, true);
  expect_same_batches(built_in, own, false);
}

TEST_F(WrappedData, LeaveOutUnusablePicturesOfAnEvaluation) {
  write_file_atomically(fs::path(path()) / "photos/cat/00.png", "no picture");
  const auto steps = "{Resize: {size: [16, 16]}}";
  const auto base = section("ImageFolderDataset", "data_dir: photos", steps);
  expect_same(base, base);
  int64_t size = 0;
  const auto batch = three_of(config_with(wrapped(base), wrapped(base)), false, &size);
  EXPECT_EQ(batch.valid, 2);
  EXPECT_EQ(batch.images.size(0), 2);
  EXPECT_EQ(batch.faults.size(), 1U);

  auto config = config_with(wrapped(base), wrapped(base));
  auto& make = config.eval->dataset.own->make;
  make = [right = make](const DatasetUse& use) {
    return std::make_unique<const CountsAll>(right(use));
  };
  const std::string why = error_of([&] { three_of(config, false, &size); }).what();
  EXPECT_TRUE(why.ends_with("made a batch with valid = 3, not the number of its rows = 2")) << why;
}

TEST_F(WrappedData, AnEvaluationHasTheClassesOfTraining) {
  fs::create_directories(fs::path(path()) / "less");
  fs::rename(fs::path(path()) / "photos/dog", fs::path(path()) / "less/dog");
  fs::create_directories(fs::path(path()) / "photos/dog");
  fs::copy(fs::path(path()) / "less/dog/01.png", fs::path(path()) / "photos/dog/01.png");
  const std::string steps = "{Resize: {size: [16, 16]}}, {NormalizeImage: }";
  const auto train = wrapped(section("ImageFolderDataset", "data_dir: photos", steps));
  const auto eval = wrapped(section("ImageFolderDataset", "data_dir: less", steps));
  int64_t size = 0;
  const auto batch = three_of(config_with(train, eval), false, &size);
  EXPECT_TRUE(at::equal(batch.targets[0].narrow(0, 0, 3), at::tensor({1, 1, 1}, at::kLong)))
      << batch.targets[0];
}

TEST_F(WrappedData, SamplesThatAreNotThereAreRefused) {
  const auto base = section("Cifar10Dataset", "data_dir: cifar", "");
  const auto config = config_with(wrapped(base), wrapped(base));
  const auto data = config.train.dataset.own->make({true, 0});
  for (const int64_t sample : {int64_t{-1}, int64_t{6}}) {
    EXPECT_EQ(std::string(error_of([&] {
                            data->make({.samples = {&sample, 1}});
                          }).what()),
              fmt::format("Cifar10Dataset has no sample {}: it has 0 to 5", sample));
  }
}

TEST_F(WrappedData, FaultsOfTheirSettingsAreNamed) {
  EXPECT_EQ(fault_of("{type: Cifar10Dataset, data_dir: d, usge: test}"),
            "unknown key 'train.dataset.base.usge', did you mean 'usage'?");
  EXPECT_EQ(fault_of("{type: Cifar10Dataset}", "eval"),
            "eval.dataset.base.data_dir is missing: a folder");
  EXPECT_EQ(fault_of("{type: WebDataset, shards: s.tar, shuffle_buffer: 9}"),
            "train.dataset.base.shuffle_buffer must be 0 where WebDataset is a part of another "
            "data set, which has no order of its own");
  EXPECT_EQ(fault_of("{type: Cifar10Dataset, data_dir: d, transform_pipeline: [{MixUp: }]}"),
            "train.dataset.base.transform_pipeline cannot have MixUp or CutMix where "
            "Cifar10Dataset is a part of another data set: they need the number of classes");
  const auto flips = "transform_pipeline: [{RandomHorizontalFlip: }]}";
  EXPECT_EQ(fault_of(std::string("{type: Cifar10Dataset, data_dir: d, ") + flips, "eval"),
            "eval.dataset.base.transform_pipeline.RandomHorizontalFlip is random, evaluation is "
            "not");
}

TEST_F(WrappedData, AreForTheUseOfTheirSection) {
  const auto base = section("Cifar10Dataset", "data_dir: cifar", "");
  const auto config = config_with(wrapped(base), wrapped(base));
  EXPECT_EQ(config.train.dataset.own->make({true, 0})->size(), 6);
  EXPECT_EQ(config.eval->dataset.own->make({false, 0})->size(), 4);
  const std::string why = error_of([&] { config.train.dataset.own->make({false, 0}); }).what();
  EXPECT_TRUE(
      why.ends_with(": Cifar10Dataset has the settings of section train, and cannot be "
                    "made for evaluation"))
      << why;
}

// A recipe reads the settings of its data out of `model`.
TEST_F(WrappedData, OfARecipeAreForBothUses) {
  const auto read = [&](const std::string& type, const std::string& keys) {
    Node node = parse_yaml(keys, "t.yaml");
    ConfigSection model(node, "model");
    const auto made = datasets().read(type, model);
    model.finish();
    EXPECT_EQ(write_yaml(node).find("usage: train"), std::string::npos);
    return made;
  };
  const auto images = "data_dir: " + path() + "/cifar\n";
  const auto both = read("Cifar10Dataset", images);
  EXPECT_EQ(both({true, 0})->size(), 6);
  EXPECT_EQ(both({false, 0})->size(), 4);
  const auto all = read("Cifar10Dataset", images + "usage: all\n");
  EXPECT_EQ(all({true, 0})->size(), 10);
  EXPECT_EQ(all({false, 0})->size(), 10);
  const auto random =
      read("Cifar10Dataset", images + "transform_pipeline:\n  - RandomHorizontalFlip: {}\n");
  EXPECT_EQ(random({true, 0})->size(), 6);
  EXPECT_STREQ(error_of([&] {
                 random({false, 0});
               }).what(),
               "t.yaml:3: a random transform of Cifar10Dataset: evaluation is not random, and "
               "needs settings of its own");
  EXPECT_STREQ(error_of([&] { read("DetDataset", "data_dir: d\n"); }).what(),
               "t.yaml:1: model: DetDataset cannot be a part of a recipe: its columns for training "
               "are others than "
               "for evaluation; take it within train.dataset and eval.dataset");
}

}  // namespace
}  // namespace lockstep
