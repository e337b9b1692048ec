// Speed of one core with training data for text networks: decoding, augmentation and, for a
// detector, target maps. bench/peers/ocr_pipeline.py is the same in Python; compare_peers.sh runs
// both.
//
// usage: bench_ocr_pipeline det|rec LABEL_FILE DATA_DIR SECONDS
// prints "KIND,lockstep,IMAGES A SECOND OF CPU TIME"

#include <fmt/format.h>
#include <time.h>

#include <cstdlib>
#include <string>

#include "lockstep/base/heap.h"
#include "lockstep/error.h"
#include "lockstep/ocr/data/label_file_dataset.h"
#include "lockstep/ocr/transforms/pipeline.h"

namespace {

using namespace lockstep;
using namespace lockstep::ocr;

/// The training pipeline of MindOCR's db_r50_icdar15.yaml.
std::vector<Transform> detection() {
  return {DecodeImage{.img_mode = ImageMode::kRgb},
          DetLabelEncode{},
          RandomColorAdjust{},
          RandomHorizontalFlip{},
          RandomRotate{.expand_canvas = false},
          RandomScale{.scale_range = {0.5, 3}, .p = 1},
          RandomCropWithBBox{.p = 1},
          ValidatePolygons{},
          ShrinkBinaryMap{},
          BorderMap{},
          NormalizeImage{},
          ToCHWImage{}};
}

/// The training pipeline of MindOCR's crnn_resnet34.yaml.
std::vector<Transform> recognition() {
  return {DecodeImage{}, RecCTCLabelEncode{.max_text_len = 24, .characters = {}},
          RecResizeImg{.padding = false}, NormalizeImage{{127, 127, 127}, {127, 127, 127}, true},
          ToCHWImage{}};
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Reading the clock takes a thirtieth of the time of a word.
constexpr int kBetweenClocks = 8;

int bench(int argc, char** argv) {
  if (argc != 5) {
    throw Error(ErrorCode::kInvalidArgument, "expected: det|rec LABEL_FILE DATA_DIR SECONDS");
  }
  cv::setNumThreads(1);
  keep_freed_memory();
  const std::string kind = argv[1];
  const LabelFileDataset data({.data_dirs = {argv[3]}, .label_files = {argv[2]}});
  const Pipeline pipeline(kind == "det" ? detection() : recognition(), 1, true);
  const double seconds = std::strtod(argv[4], nullptr);
  const auto make = [&](int64_t number) {
    const int64_t index = number % data.size();
    Sample sample = data.load(index);
    pipeline.apply(sample, number / data.size(), index);
  };
  make(0);  // one-time loading is not counted
  int64_t count = 0;
  const double begin = cpu_seconds();
  while (cpu_seconds() - begin < seconds) {
    for (int i = 0; i < kBetweenClocks; ++i) make(count++);
  }
  fmt::print("{},lockstep,{:.1f}\n", kind, static_cast<double>(count) / (cpu_seconds() - begin));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("bench_ocr_pipeline", bench, argc, argv);
}
