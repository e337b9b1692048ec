#include "lockstep/data/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "lockstep/base/philox.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

/// Source of the pixels of an axis: position i shows input position origin + step * i, or black if
/// that is outside.
struct AxisMap {
  int64_t origin = 0;
  int64_t step = 1;
};

/// An image so far: what its pixels are of the bytes.
struct Window {
  AxisMap rows;
  AxisMap columns;
  int64_t height;
  int64_t width;
};

void draw(const RandomCrop& crop, const ImageShape& input, Philox& random, Window& window) {
  const auto place = [&](int64_t extent) {
    return random.below(static_cast<uint32_t>(extent + 2 * crop.padding - crop.size + 1)) -
           crop.padding;
  };
  window.rows.origin += window.rows.step * place(input.height);
  window.columns.origin += window.columns.step * place(input.width);
  window.height = window.width = crop.size;
}

void draw(const RandomHorizontalFlip& flip, const ImageShape&, Philox& random, Window& window) {
  if (random.uniform() >= flip.prob) return;
  window.columns.origin += window.columns.step * (window.width - 1);
  window.columns.step = -window.columns.step;
}

/// ResizePicture and Normalize draw nothing.
template <typename Other>
void draw(const Other&, const ImageShape&, Philox&, Window&) {}

/// The positions i in [0, size) that fall inside an input axis of `extent`: [first, last).
std::pair<int64_t, int64_t> inside(const AxisMap& map, int64_t extent, int64_t size) {
  const int64_t first = map.step > 0 ? -map.origin : map.origin - (extent - 1);
  const int64_t last = map.step > 0 ? extent - map.origin : map.origin + 1;
  const int64_t from = std::clamp<int64_t>(first, 0, size);
  return {from, std::clamp<int64_t>(last, from, size)};
}

void copy_row(const uint8_t* row, const AxisMap& map, std::pair<int64_t, int64_t> columns,
              const std::array<float, 256>& table, float* out) {
  const uint8_t* in = row + map.origin;
  if (map.step > 0) {
    for (int64_t x = columns.first; x < columns.second; ++x) out[x] = table[in[x]];
  } else {
    for (int64_t x = columns.first; x < columns.second; ++x) out[x] = table[in[-x]];
  }
}

/// The floats of the pixels in the window, a plane for each table; a grey image's one plane serves
/// each. The window may be larger than the image.
void write_window(std::span<const uint8_t> image, const ImageShape& shape, const Window& window,
                  const ByteTables& tables, float* out) {
  const auto [channels, height, width] = shape;
  const auto columns = inside(window.columns, width, window.width);
  const uint8_t* plane = image.data();
  float* row = out;
  for (const auto& table : tables) {
    for (int64_t y = 0; y < window.height; ++y, row += window.width) {
      const int64_t from = window.rows.origin + window.rows.step * y;
      if (from < 0 || from >= height) {
        std::fill_n(row, window.width, table[0]);
        continue;
      }
      std::fill(row, row + columns.first, table[0]);
      copy_row(plane + from * width, window.columns, columns, table, row);
      std::fill(row + columns.second, row + window.width, table[0]);
    }
    if (channels > 1) plane += height * width;
  }
}

/// Steps of ImageTransform stand in ascending order; 0 may stand there several times. -1: of a step
/// that it does not take.
int turn_of(const PictureStep& step) {
  if (std::holds_alternative<ResizePicture>(step)) return 1;
  if (std::holds_alternative<Normalize>(step)) return 2;
  const bool is_first = std::holds_alternative<RandomCrop>(step) ||
                        std::holds_alternative<RandomHorizontalFlip>(step);
  return is_first ? 0 : -1;
}

/// The two input positions around an output position, and the weight of the second.
struct Between {
  int64_t low = 0;
  int64_t high = 0;
  float part = 0;
};

std::vector<Between> axis_places(int64_t input, int64_t output) {
  std::vector<Between> places;
  const double step = static_cast<double>(input) / static_cast<double>(output);
  for (int64_t i = 0; i < output; ++i) {
    const double at = std::clamp((static_cast<double>(i) + 0.5) * step - 0.5, 0.0,
                                 static_cast<double>(input - 1));
    const auto low = static_cast<int64_t>(at);
    places.push_back(
        {low, std::min(low + 1, input - 1), static_cast<float>(at - static_cast<double>(low))});
  }
  return places;
}

/// in: (C, H, W) of `from`, out: (C, H', W') of `to`.
void resize_planes(const std::vector<float>& in, const ImageShape& from, const ImageShape& to,
                   float* out) {
  const auto rows = axis_places(from.height, to.height);
  const auto columns = axis_places(from.width, to.width);
  const float* plane = in.data();
  for (int64_t c = 0; c < from.channels; ++c, plane += from.height * from.width) {
    for (const Between& y : rows) {
      const float* above = plane + y.low * from.width;
      const float* below = plane + y.high * from.width;
      for (const Between& x : columns) {
        const float top = above[x.low] + (above[x.high] - above[x.low]) * x.part;
        const float bottom = below[x.low] + (below[x.high] - below[x.low]) * x.part;
        *out++ = top + (bottom - top) * y.part;
      }
    }
  }
}

}  // namespace

ByteTables byte_tables(const Normalize* normalize, int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  if (normalize != nullptr && (normalize->mean.size() != count || normalize->std.size() != count)) {
    refuse(fmt::format("Normalize: mean has {} and std {} numbers; the images have {} channels",
                       normalize->mean.size(), normalize->std.size(), channels));
  }
  ByteTables tables(count);
  for (size_t c = 0; c < count; ++c) {
    const auto mean = normalize ? static_cast<float>(normalize->mean[c]) : 0.0F;
    const auto std = normalize ? static_cast<float>(normalize->std[c]) : 1.0F;
    if (!(std > 0)) refuse(fmt::format("Normalize: std is {}; it must be above 0", std));
    for (size_t v = 0; v < 256; ++v) {
      tables[c][v] = (static_cast<float>(v) / 255.0F - mean) / std;
    }
  }
  return tables;
}

int64_t network_channels(const ImageShape& stored, int64_t channels) {
  if (channels != 0 && stored.channels != 1 && channels != stored.channels) {
    refuse(fmt::format("images of {} channels cannot become {}", stored.channels, channels));
  }
  return channels != 0 ? channels : stored.channels;
}

void check_crop(const RandomCrop& crop, PictureSize from) {
  if (crop.size < 1 || crop.padding < 0 ||
      crop.size > std::min(from.height, from.width) + 2 * crop.padding) {
    refuse(fmt::format("RandomCrop: size {} does not fit into a picture of {} x {} with padding {}",
                       crop.size, from.width, from.height, crop.padding));
  }
}

bool ImageTransform::takes(const std::vector<PictureStep>& steps) {
  int last = 0;
  int crops = 0;
  for (const auto& step : steps) {
    const int turn = turn_of(step);
    if (turn < last || (turn == last && turn > 0)) return false;
    last = turn;
    crops += std::holds_alternative<RandomCrop>(step) ? 1 : 0;
  }
  return crops <= 1;
}

ImageTransform::ImageTransform(std::vector<PictureStep> steps, ImageShape input, uint64_t seed,
                               int64_t channels)
    : steps_(std::move(steps)), input_(input), sampled_(input), output_(input), seed_(seed) {
  if (!takes(steps_)) refuse("transform_pipeline: these transforms need a PicturePipeline");
  sampled_.channels = output_.channels = network_channels(input, channels);
  const auto size_of = [](const ImageShape& shape) {
    return PictureSize{static_cast<int>(shape.width), static_cast<int>(shape.height)};
  };
  for (const auto& step : steps_) {
    if (const auto* crop = std::get_if<RandomCrop>(&step)) {
      check_crop(*crop, size_of(input));
      sampled_.height = sampled_.width = crop->size;
      output_ = sampled_;
    }
    if (const auto* resize = std::get_if<ResizePicture>(&step)) {
      const auto size = size_after(*resize, size_of(sampled_));
      output_.height = size.height;
      output_.width = size.width;
    }
  }
  const auto* normalize = steps_.empty() ? nullptr : std::get_if<Normalize>(&steps_.back());
  tables_ = byte_tables(normalize, output_.channels);
}

void ImageTransform::apply(std::span<const uint8_t> image, int64_t epoch, int64_t key,
                           std::span<float> out) const {
  if (output_.height == sampled_.height && output_.width == sampled_.width) {
    return sample(image, epoch, key, out.data());
  }
  std::vector<float> small(static_cast<size_t>(sampled_.numel()));
  sample(image, epoch, key, small.data());
  resize_planes(small, sampled_, output_, out.data());
}

void ImageTransform::sample(std::span<const uint8_t> image, int64_t epoch, int64_t key,
                            float* out) const {
  Philox random(seed_, static_cast<uint32_t>(epoch), static_cast<uint64_t>(key));
  Window window{{}, {}, input_.height, input_.width};
  for (const auto& step : steps_) {
    std::visit([&](const auto& what) { draw(what, input_, random, window); }, step);
  }
  write_window(image, input_, window, tables_, out);
}

}  // namespace lockstep::inline internal
