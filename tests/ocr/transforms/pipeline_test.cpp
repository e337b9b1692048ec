#include "lockstep/ocr/transforms/pipeline.h"

#include <thread>

#include "tests/data/errors.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

/// The pipeline of MindOCR's db_r50_icdar15.yaml.
std::vector<Transform> detection_training() {
  return {DecodeImage{.img_mode = ImageMode::kRgb},
          DetLabelEncode{},
          RandomColorAdjust{},
          RandomHorizontalFlip{},
          RandomRotate{.expand_canvas = false},
          RandomScale{.scale_range = {0.5, 3}, .p = 1},
          RandomCropWithBBox{.crop_size = {160, 160}, .p = 1},
          ValidatePolygons{},
          ShrinkBinaryMap{},
          BorderMap{},
          NormalizeImage{},
          ToCHWImage{}};
}

Sample made(const Pipeline& pipeline, int64_t epoch, int64_t index) {
  Sample sample = scene();
  pipeline.apply(sample, epoch, index);
  return sample;
}

bool same(const cv::Mat& a, const cv::Mat& b) {
  const bool same_layout = a.type() == b.type() && a.dims == b.dims && a.size == b.size;
  return same_layout && std::memcmp(a.data, b.data, a.total() * a.elemSize()) == 0;
}

TEST(Pipeline, MakesWhatADetectorTrainsOn) {
  const Pipeline pipeline(detection_training(), 1, true);
  const Sample sample = made(pipeline, 0, 0);
  EXPECT_TRUE(sample.planar);
  ASSERT_EQ(sample.image.dims, 3);
  EXPECT_EQ(sample.image.size[0], 3);
  EXPECT_EQ(sample.image.size[1], 160);
  EXPECT_EQ(sample.image.size[2], 160);
  EXPECT_TRUE(sample.image.isContinuous());
  for (const auto* map :
       {&sample.binary_map, &sample.mask, &sample.thresh_map, &sample.thresh_mask}) {
    EXPECT_EQ(map->size(), cv::Size(160, 160));
    EXPECT_EQ(map->type(), CV_32F);
  }
  EXPECT_EQ(sample.raw_size, cv::Size(320, 240));
}

TEST(Pipeline, DrawsFollowFromSeedEpochAndIndexAlone) {
  const Pipeline pipeline(detection_training(), 1, true), same_seed(detection_training(), 1, true);
  const Sample first = made(pipeline, 3, 5);
  EXPECT_TRUE(same(first.image, made(same_seed, 3, 5).image));
  EXPECT_FALSE(same(first.image, made(pipeline, 4, 5).image));
  EXPECT_FALSE(same(first.image, made(pipeline, 3, 6).image));
  EXPECT_FALSE(same(first.image, made(Pipeline(detection_training(), 2, true), 3, 5).image));
}

TEST(Pipeline, ThreadsMakeTheSame) {
  const Pipeline pipeline(detection_training(), 1, true);
  std::vector<Sample> alone, together(8);
  for (int64_t i = 0; i < 8; ++i) alone.push_back(made(pipeline, 0, i));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { together[i] = made(pipeline, 0, static_cast<int64_t>(i)); });
  }
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(same(alone[i].image, together[i].image));
    EXPECT_TRUE(same(alone[i].thresh_map, together[i].thresh_map));
  }
}

TEST(Pipeline, EncodesWords) {
  const Pipeline pipeline({DecodeImage{}, RecCTCLabelEncode{.max_text_len = 4, .characters = {}},
                           RecResizeImg{.padding = false},
                           NormalizeImage{{127, 127, 127}, {127, 127, 127}, true}, ToCHWImage{}},
                          0, true);
  Sample sample = scene();
  sample.label = "Ab!";
  pipeline.apply(sample, 0, 0);
  EXPECT_EQ(sample.text_seq, (std::vector<int32_t>{10, 11, 36, 36}));
  EXPECT_EQ(sample.length, 2);
  ASSERT_EQ(sample.remarks.size(), 1U);
  EXPECT_EQ(sample.remarks[0], "'Ab!': not in the dictionary: '!'");
  cv::Mat expected;
  cv::resize(cv::imdecode(scene().encoded, cv::IMREAD_COLOR), expected, {100, 32});
  ASSERT_TRUE(sample.image.dims == 3 && sample.image.isContinuous());
  ASSERT_EQ(sample.image.total(), 3U * 32 * 100);
  for (int i = 0; i < 3 * 32 * 100; ++i) {
    const int channel = i / 3200, y = i / 100 % 32, x = i % 100;
    ASSERT_EQ(sample.image.at<float>(channel, y, x),
              (static_cast<float>(expected.at<cv::Vec3b>(y, x)[2 - channel]) - 127) / 127);
  }
}

TEST(Pipeline, FaultsNameTheSample) {
  const Pipeline pipeline(detection_training(), 1, true);
  Sample sample = scene();
  sample.label = "[{]";
  sample.label_source = "gt.txt:17";
  EXPECT_EQ(error_of(ErrorCode::kCorrupt, [&] { pipeline.apply(sample, 0, 0); }).substr(0, 29),
            "gt.txt:17 (scene.jpg): label:");
  Sample gone;
  gone.source = "/no/such.jpg";
  EXPECT_EQ(error_of(ErrorCode::kNotFound, [&] { pipeline.apply(gone, 0, 0); }),
            "/no/such.jpg: no such file");
}

TEST(Pipeline, AnImageOfWhichACropLeavesNothingIsABadSample) {
  const RandomCropWithBBox crop{.crop_size = {160, 160}, .p = 1};
  const RandomScale thrice{.scale_range = {3, 3}, .p = 1};
  for (const auto& before : {std::vector<Transform>{}, std::vector<Transform>{thrice}}) {
    std::vector<Transform> transforms = {DecodeImage{}};
    transforms.insert(transforms.end(), before.begin(), before.end());
    transforms.emplace_back(crop);
    Sample sample;
    sample.source = "line.png";
    sample.encoded = encoded(gradient(2000, 1), ".png");
    const auto fault = error_of(ErrorCode::kInvalidArgument,
                                [&] { Pipeline(transforms, 1, true).apply(sample, 0, 0); });
    EXPECT_EQ(fault.substr(0, 29), "line.png: RandomCropWithBBox:");
  }
}

TEST(Pipeline, AMissingDictionaryIsToldAtOnce) {
  const CharacterOptions characters{.character_dict_path = "/no/dict.txt"};
  error_of(ErrorCode::kNotFound, [&] {
    Pipeline({RecCTCLabelEncode{.max_text_len = 4, .characters = characters}}, 0, true);
  });
}

}  // namespace
}  // namespace lockstep::ocr
