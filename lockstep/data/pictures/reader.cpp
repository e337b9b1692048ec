#include "lockstep/data/pictures/reader.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/ocr/transforms/decode.h"

namespace lockstep {
namespace {

std::string starting_with(const std::string& path, const std::string& what) {
  return what.find(path) == std::string::npos ? path + ": " + what : what;
}

}  // namespace

cv::Mat read_picture(const std::filesystem::path& path) {
  ocr::Sample sample;
  sample.source = path.string();
  try {
    ocr::decode_image({.img_mode = ocr::ImageMode::kRgb, .ignore_orientation = true}, sample);
  } catch (const Error& error) {
    throw Error(error.code(), starting_with(sample.source, error.what()));
  }
  return sample.image;
}

PictureReader::PictureReader(std::shared_ptr<const PictureIndex> index, PicturePipeline pipeline,
                             BadSample bad, uint64_t seed)
    : index_(std::move(index)), pipeline_(std::move(pipeline)), bad_(bad), seed_(seed) {}

PictureSample PictureReader::make(int64_t epoch, int64_t index) const {
  const auto path = index_->path(index);
  const cv::Mat picture = read_picture(path);
  try {
    return {pipeline_.apply(picture, epoch, index), index, index_->label(index)};
  } catch (const Error& error) {
    throw Error(error.code(), starting_with(path.string(), error.what()));
  }
}

UsableSamples<PictureSample> PictureReader::read(int64_t epoch,
                                                 std::span<const int64_t> indices) const {
  return make_usable<PictureSample>(
      indices, index_->size(), bad_, seed_, epoch,
      [&](int64_t index) { return make(epoch, index); },
      [&](const PictureSample& sample) { return index_->path(sample.index).string(); });
}

}  // namespace lockstep
