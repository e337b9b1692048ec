// Batches of pictures in files: decode, RandomResizedCrop to 224 pixels, flip, normalise. The
// figure is of all CPU time of the process, so it is valid on a busy machine too. picture_data.py
// is the same with PyTorch; compare_pictures.sh runs both.
//
// usage: bench_pictures FOLDER SECONDS same|reduced
// prints "lockstep-same,IMAGES A SECOND OF CPU TIME"

#include <fmt/format.h>
#include <time.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>

#include "lockstep/data/loader.h"
#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/picture_batches.h"
#include "lockstep/data/pictures/reader.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

constexpr int64_t kBatch = 64;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int bench(int argc, char** argv) {
  const std::string kind = argc == 4 ? argv[3] : "";
  if (kind != "same" && kind != "reduced") {
    throw Error(ErrorCode::kInvalidArgument, "expected: FOLDER SECONDS same|reduced");
  }
  const double seconds = std::strtod(argv[2], nullptr);
  const auto index = std::make_shared<PictureIndex>(index_folder(argv[1]));
  const Normalize imagenet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  PicturePipeline pipeline({RandomResizedCrop{}, RandomHorizontalFlip{}, imagenet}, 1,
                           kind == "reduced");
  Loader loader(picture_batches(PictureReader(index, std::move(pipeline), BadSample::kReplaced, 1),
                                BadSample::kReplaced),
                {.batch_size = kBatch, .drop_remainder = false, .threads = 1, .prefetch = 2});
  std::vector<int64_t> order(static_cast<size_t>(index->size()));
  std::iota(order.begin(), order.end(), 0);
  loader.start(0, {order});
  while (loader.next()) {  // files are in memory from here on
  }
  const double begin = cpu_seconds();
  int64_t images = 0;
  for (int64_t epoch = 1; cpu_seconds() - begin < seconds; ++epoch) {
    loader.start(epoch, {order});
    while (const auto batch = loader.next()) images += batch->valid;
  }
  fmt::print("lockstep-{},{:.1f}\n", kind, static_cast<double>(images) / (cpu_seconds() - begin));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("bench_pictures", bench, argc, argv);
}
