#include "lockstep/data/pictures/reader.h"

#include <fmt/format.h>

#include "lockstep/base/reading_note.h"
#include "lockstep/data/pictures/shard_file.h"
#include "lockstep/error.h"
#include "lockstep/ocr/transforms/decode.h"

namespace lockstep {
namespace {

std::string starting_with(const std::string& path, const std::string& what) {
  return what.find(path) == std::string::npos ? path + ": " + what : what;
}

cv::Mat decoded(ocr::Sample& sample) {
  ocr::decode_image({.img_mode = ocr::ImageMode::kRgb, .ignore_orientation = true}, sample);
  return sample.image;
}

}  // namespace

cv::Mat read_picture(const std::filesystem::path& path) {
  ocr::Sample sample;
  sample.source = path.string();
  try {
    return decoded(sample);
  } catch (const Error& error) {
    throw Error(error.code(), starting_with(sample.source, error.what()));
  }
}

cv::Mat read_picture(const std::filesystem::path& archive, const FilePart& part) {
  ocr::Sample sample;
  sample.encoded.resize(part.bytes);
  {
    const ReadingNote note(archive.string());
    const size_t there = ShardFile(archive).read(
        part.begin, reinterpret_cast<char*>(sample.encoded.data()), part.bytes);
    if (there < part.bytes) throw Error(ErrorCode::kCorrupt, "the archive has become shorter");
  }
  if (sample.encoded.empty()) throw Error(ErrorCode::kCorrupt, "an empty file");
  return decoded(sample);
}

PictureReader::PictureReader(std::shared_ptr<const PictureIndex> index, PicturePipeline pipeline,
                             BadSample bad, uint64_t seed)
    : index_(std::move(index)), pipeline_(std::move(pipeline)), bad_(bad), seed_(seed) {}

PictureSample PictureReader::make(int64_t epoch, int64_t index) const {
  try {
    const auto part = index_->part(index);
    const auto path = index_->path(index);
    const cv::Mat picture = part ? read_picture(path, *part) : read_picture(path);
    return {pipeline_.apply(picture, epoch, index), index, index_->label(index)};
  } catch (const Error& error) {
    throw Error(error.code(), starting_with(index_->where(index), error.what()));
  }
}

UsableSamples<PictureSample> PictureReader::read(int64_t epoch,
                                                 std::span<const int64_t> indices) const {
  return make_usable<PictureSample>(
      indices, index_->size(), bad_, seed_, epoch,
      [&](int64_t index) { return make(epoch, index); },
      [&](const PictureSample& sample) { return index_->where(sample.index); });
}

}  // namespace lockstep
