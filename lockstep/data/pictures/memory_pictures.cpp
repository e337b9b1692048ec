#include "lockstep/data/pictures/memory_pictures.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::inline internal {
namespace {

/// The picture of `planes`, (C, H, W).
cv::Mat picture_of_planes(std::span<const uint8_t> planes, const ImageShape& shape) {
  cv::Mat picture(static_cast<int>(shape.height), static_cast<int>(shape.width), CV_8UC3);
  const size_t pixels = picture.total();
  const size_t to_next = shape.channels == 1 ? 0 : pixels;
  uint8_t* out = picture.data;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) *out++ = planes[c * to_next + i];
  }
  return picture;
}

class MemoryPictures final : public PictureSource {
 public:
  MemoryPictures(std::shared_ptr<const ImageDataset> data, int64_t count, std::string name)
      : data_(std::move(data)), count_(count), name_(std::move(name)) {}

  int64_t size() const override { return count_; }
  int64_t label(int64_t index) const override { return data_->label(index); }
  std::string where(int64_t index) const override {
    return fmt::format("{}: image {}", name_, index);
  }
  Undecoded read(int64_t index) const override {
    return already_decoded(picture_of_planes(data_->image(index), data_->shape()));
  }

 private:
  std::shared_ptr<const ImageDataset> data_;
  int64_t count_;
  std::string name_;
};

}  // namespace

std::shared_ptr<const PictureSource> memory_pictures(std::shared_ptr<const ImageDataset> data,
                                                     int64_t count, std::string name) {
  return std::make_shared<MemoryPictures>(std::move(data), count, std::move(name));
}

}  // namespace lockstep::inline internal
