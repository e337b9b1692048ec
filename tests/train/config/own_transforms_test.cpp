// Transforms that a program registered, as a configuration names them.

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/philox.h"
#include "lockstep/base/transform_failed.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/yaml_writer.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

const TransformPart kGrain("RandomGrain", "noise on each byte", [](Section& settings) {
  int64_t most = 16;
  settings.read("most", most, {1, 255}, "the strongest");
  return [=](Picture& picture, RandomNumbers& random) {
    picture.bytes()[0] = static_cast<uint8_t>(random.below(most));
  };
});
const TransformPart kMark("RandomlyNamed", "a mark, always", [](Section&) {
  return [](Picture& picture) { picture.bytes()[0] = 77; };
});
const TransformPart kBuiltInName("CenterCrop", "another one",
                                 [](Section&) { return [](Picture&) {}; });
const TransformPart kNameOfText("ValidatePolygons", "another one",
                                [](Section&) { return [](Picture&) {}; });
const TransformPart kNothing("Nothing", "has no function",
                             [](Section&) { return PictureTransform(PlainTransform()); });

const TransformPart kShrinking("Shrinking", "leaves one pixel", [](Section&) {
  return [](Picture& picture) { picture = Picture(1, 1); };
});

/// Those of a classifier's pipelines.
const std::vector<std::string> kOwnItems = {
    "train.dataset.transform_pipeline=[{RandomGrain: {most: 5}}, {RandomGrain: }, "
    "{RandomlyNamed: }]",
    "eval.dataset.transform_pipeline=[{RandomlyNamed: }]"};

/// The error contains `part` if the items of `section` are these.
void expect_refused(const std::string& section, const std::string& items, const std::string& part) {
  const auto said = fault_in(kPictures, {section + ".dataset.transform_pipeline=[" + items + "]"});
  EXPECT_NE(said.find(part), std::string::npos) << items << ": " << said;
}

struct AllOnes final : RandomNumbers {
  uint32_t next() override { return 0xFFFFFFFF; }
};

TEST(OwnTransforms, AreReadWithTheirSettings) {
  const auto config = read_text(kPictures, kOwnItems);
  const auto& items = config.train.dataset.transforms;
  ASSERT_EQ(items.size(), 3u);
  Picture picture(2, 1);
  AllOnes random;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    ASSERT_TRUE(items[i].own());
    std::get<RandomTransform>(items[i].own()->transform)(picture, random);
    EXPECT_EQ(picture.bytes()[0], i == 0 ? 4 : 15);
  }
  std::get<PlainTransform>(config.eval->dataset.transforms.at(0).own()->transform)(picture);
  EXPECT_EQ(picture.bytes()[0], 77);
  EXPECT_EQ(items[2].where, "-o " + kOwnItems[0]);
  const auto text = write_yaml(config.effective);
  EXPECT_NE(text.find("most: 16"), std::string::npos) << text;
}

TEST(OwnTransforms, MistakesNameTheNearest) {
  expect_refused("train", "{RandomGrian: }",
                 "unknown key 'train.dataset.transform_pipeline.RandomGrian', did you mean "
                 "'RandomGrain'?");
  expect_refused("train", "{RandomGrain: {mots: 3}}",
                 "unknown key 'train.dataset.transform_pipeline.RandomGrain.mots', did you mean "
                 "'most'?");
  expect_refused("train", "{RandomGrain: {most: many}}",
                 "train.dataset.transform_pipeline.RandomGrain.most must be a whole number from 1 "
                 "to 255, not 'many'");
  expect_refused("train", "{CenterCrop: {size: 3}}",
                 "train.dataset.transform_pipeline.CenterCrop is the name of a built-in part, too");
}

TEST(OwnTransforms, MayNotHaveTheNameOfABuiltInOneOfText) {
  expect_refused(
      "train", "{ValidatePolygons: }",
      "train.dataset.transform_pipeline.ValidatePolygons is the name of a built-in part, too");
}

TEST(OwnTransforms, AMakerWithoutAFunctionIsRefused) {
  expect_refused("train", "{Nothing: }",
                 "train.dataset.transform_pipeline.Nothing made no function");
}

TEST(OwnTransforms, RandomOnesAreForTraining) {
  expect_refused("eval", "{RandomGrain: }",
                 "eval.dataset.transform_pipeline.RandomGrain is random, evaluation is not");
}

TEST(OwnTransforms, AreForSmallImagesToo) {
  const auto config =
      read_text(kPictures, {"train.dataset={data_dir: d, transform_pipeline: [{RandomGrain: }]}",
                            "eval.dataset={transform_pipeline: [{RandomlyNamed: }]}"});
  EXPECT_EQ(config.train.dataset.type, "Cifar10Dataset");
  ASSERT_EQ(config.train.dataset.transforms.size(), 1u);
  EXPECT_TRUE(config.train.dataset.transforms[0].own());
  EXPECT_TRUE(config.eval->dataset.transforms.at(0).own());
  EXPECT_NE(
      fault_in(kPictures, {"train.dataset={data_dir: d, transform_pipeline: [{RandomGrian: }]}"}),
      "");
}

/// A detector's pipelines with own transforms, and more changes.
std::vector<std::string> of_own_detector(const std::string& more = "") {
  std::vector<std::string> overrides = {
      "train.dataset.transform_pipeline=[{DecodeImage: {img_mode: RGB}}, {DetLabelEncode: }, "
      "{RandomGrain: {most: 5}}, {RandomCropWithBBox: {p: 1.0}}, {ShrinkBinaryMap: }, "
      "{BorderMap: }, {NormalizeImage: }, {ToCHWImage: }]",
      "eval={dataset: {type: DetDataset, data_dir: images, label_file: gt.txt, "
      "transform_pipeline: [{DecodeImage: }, {RandomlyNamed: }, {Shrinking: }, {DetLabelEncode: }, "
      "{DetResize: }, {NormalizeImage: }, {ToCHWImage: }]}, loader: {batch_size: 1}}"};
  if (!more.empty()) overrides.push_back(more);
  return overrides;
}

TEST(OwnTransforms, AreForPicturesOfTextToo) {
  const auto config = read_text(kDetector, of_own_detector());
  const auto& grain = std::get<ocr::OwnPixels>(config.train.dataset.pipeline.at(2));
  EXPECT_EQ(grain.name, "RandomGrain");
  EXPECT_FALSE(grain.bgr);
  std::vector<uint8_t> pixels(12, 200);
  Philox draws(1, 2, 3), same(1, 2, 3);
  grain.change(pixels, 2, 2, draws);
  EXPECT_EQ(pixels[0], same.below(5));
  EXPECT_EQ(std::count(pixels.begin(), pixels.end(), 200), 11);
  EXPECT_TRUE(std::get<ocr::OwnPixels>(config.eval->dataset.pipeline.at(1)).bgr)
      << "as DecodeImage makes it unless told";
  const auto& shrinking = std::get<ocr::OwnPixels>(config.eval->dataset.pipeline.at(2));
  try {
    shrinking.change(pixels, 2, 2, draws);
    ADD_FAILURE() << "no failure";
  } catch (const TransformFailed& failure) {
    EXPECT_STREQ(
        failure.what(),
        "the transform Shrinking made 1 x 1 pixels of 2 x 2: only pictures of a classifier "
        "may change their size");
  }
}

TEST(OwnTransforms, OfTextAreRefusedInOneLine) {
  const auto refused = [](const std::string& section, const std::string& items) {
    return fault_in(kDetector, of_own_detector(section + ".dataset.transform_pipeline=[" +
                                               "{DecodeImage: }, " + items + "]"));
  };
  const auto expect = [&](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(
      refused("train", "{NormalizeImage: }, {RandomGrain: }"),
      "train.dataset.transform_pipeline.RandomGrain must stand before NormalizeImage: it changes "
      "pixels of 8 bits");
  expect(refused("train", "{DecodeImage: {to_float32: True}}, {RandomGrain: }"),
         "RandomGrain changes pixels of 8 bits: it needs DecodeImage without to_float32");
  expect(refused("eval", "{RandomGrain: }"),
         "eval.dataset.transform_pipeline.RandomGrain is random, and this pipeline may not be");
  expect(refused("train", "{RandomGrian: }"), "RandomGrian', did you mean 'RandomGrain'?");
  expect(refused("train", "{CenterCrop: }"),
         "train.dataset.transform_pipeline.CenterCrop is the name of a built-in part, too");
  expect(refused("train", "{RandomGrain: {most: 999}}"),
         "RandomGrain.most must be a whole number from 1 to 255, not '999'");
}

TEST(OwnTransforms, AreListedBesideTheBuiltInOnes) {
  const auto text = list_parts("transforms");
  EXPECT_EQ(text.find("transforms (an item of transform_pipeline; built-in ones: of cls):\n"
                      "  Resize: brings the picture to a size; bilinear\n"
                      "    size: one number is of the shorter side; a whole number, or [height, "
                      "width]; required; small images: 224\n"
                      "  CenterCrop: "),
            0U)
      << text;
  EXPECT_NE(text.find("  MixUp: the weighted mean of each image of a batch and the next one\n"
                      "    alpha: of the beta distribution of the shares; a number from 0.01 to "
                      "1000; default 1.0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  RandomGrain: noise on each byte\n"
                      "    most: the strongest; a whole number from 1 to 255; default 16\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  RandomHorizontalFlip: mirrors left and right\n"
                      "    prob: its probability; also as `p`; a number from 0 to 1; default "
                      "0.5\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("transforms (", 1), std::string::npos) << "one list: " << text;
}

}  // namespace
}  // namespace lockstep
