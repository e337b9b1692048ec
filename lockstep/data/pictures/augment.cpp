#include "lockstep/data/pictures/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "lockstep/data/pictures/colour.h"

namespace lockstep::inline internal {
namespace {

using Table = std::array<uint8_t, 256>;  ///< The new value of each value.
using Histogram = std::array<int64_t, 256>;

/// (x, y) of the result shows (a x + b y + c, d x + e y + f).
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

/// The pixel of a coordinate; -1: none.
int pixel_of(double at) {
  return at < 0 ? -1 : static_cast<int>(at);
}

/// Without shear or turn Pillow adds up the coordinates in floating point.
cv::Mat shifted(const cv::Mat& picture, const Affine& from) {
  cv::Mat out(picture.size(), CV_8UC3, cv::Scalar::all(0));
  double y_in = from.f + from.e * 0.5;
  for (int y = 0; y < out.rows; ++y, y_in += from.e) {
    const int row = pixel_of(y_in);
    if (row < 0 || row >= picture.rows) continue;
    double x_in = from.c + from.a * 0.5;
    for (int x = 0; x < out.cols; ++x, x_in += from.a) {
      const int column = pixel_of(x_in);
      if (column < 0 || column >= picture.cols) continue;
      out.at<cv::Vec3b>(y, x) = picture.at<cv::Vec3b>(row, column);
    }
  }
  return out;
}

/// With shear or turn they are fixed-point numbers of 16 bits.
cv::Mat moved(const cv::Mat& picture, const Affine& from) {
  if (from.b == 0 && from.d == 0) return shifted(picture, from);
  const auto fixed = [](double value) {
    return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5));
  };
  const int64_t a = fixed(from.a), b = fixed(from.b), d = fixed(from.d), e = fixed(from.e);
  int64_t x_row = fixed(from.c + from.a * 0.5 + from.b * 0.5);
  int64_t y_row = fixed(from.f + from.d * 0.5 + from.e * 0.5);
  cv::Mat out(picture.size(), CV_8UC3, cv::Scalar::all(0));
  for (int row = 0; row < out.rows; ++row, x_row += b, y_row += e) {
    auto* to = out.ptr<cv::Vec3b>(row);
    int64_t x_in = x_row, y_in = y_row;
    for (int column = 0; column < out.cols; ++column, ++to, x_in += a, y_in += d) {
      const int64_t x = x_in >> 16, y = y_in >> 16;
      if (x < 0 || x >= picture.cols || y < 0 || y >= picture.rows) continue;
      *to = picture.at<cv::Vec3b>(static_cast<int>(y), static_cast<int>(x));
    }
  }
  return out;
}

/// torchvision takes it to degrees and back.
double tangent_of_shear(double shear) {
  constexpr double kDegrees = 180 / std::numbers::pi;
  return std::tan(std::atan(shear) * kDegrees * (std::numbers::pi / 180));
}

cv::Mat turned(const cv::Mat& picture, double degrees) {
  double angle = std::fmod(degrees, 360.0);
  if (angle < 0) angle += 360;
  if (angle == 0) return picture.clone();
  const auto rounded = [](double value) { return std::nearbyint(value * 1e15) / 1e15; };
  angle = -angle * (std::numbers::pi / 180);
  Affine from;
  from.a = from.e = rounded(std::cos(angle));
  from.b = rounded(std::sin(angle));
  from.d = rounded(-std::sin(angle));
  const double x = picture.cols / 2.0, y = picture.rows / 2.0;
  from.c = from.a * -x + from.b * -y + x;
  from.f = from.d * -x + from.e * -y + y;
  return moved(picture, from);
}

/// `tables`: one for each channel.
cv::Mat looked_up(const cv::Mat& picture, const std::array<Table, 3>& tables) {
  cv::Mat out(picture.size(), CV_8UC3);
  for (int y = 0; y < out.rows; ++y) {
    const auto* from = picture.ptr<cv::Vec3b>(y);
    auto* to = out.ptr<cv::Vec3b>(y);
    for (int x = 0; x < out.cols; ++x) {
      for (int c = 0; c < 3; ++c) to[x][c] = tables[static_cast<size_t>(c)][from[x][c]];
    }
  }
  return out;
}

template <typename Value>
std::array<Table, 3> one_table(const Value& value) {
  Table table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = static_cast<uint8_t>(value(i));
  return {table, table, table};
}

std::array<Table, 3> posterized(int bits) {
  const int mask = ~((1 << (8 - bits)) - 1);
  return one_table([&](int value) { return value & mask; });
}

std::array<Table, 3> solarized(double lowest) {
  return one_table([&](int value) { return value < lowest ? value : 255 - value; });
}

std::array<Histogram, 3> histograms(const cv::Mat& picture) {
  std::array<Histogram, 3> counts{};
  for (int y = 0; y < picture.rows; ++y) {
    const auto* row = picture.ptr<cv::Vec3b>(y);
    for (int x = 0; x < picture.cols; ++x) {
      for (size_t c = 0; c < 3; ++c) ++counts[c][row[x][static_cast<int>(c)]];
    }
  }
  return counts;
}

Table unchanged() {
  return one_table([](int value) { return value; })[0];
}

/// The lowest value becomes 0, the highest 255.
Table stretching(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return unchanged();
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  return one_table(
      [&](int value) { return std::clamp(static_cast<int>(value * scale + offset), 0, 255); })[0];
}

/// Equally many pixels of each value, as far as possible.
Table equalizing(const Histogram& counts) {
  int64_t all = 0, last = 0, kinds = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    all += count;
    last = count;
    ++kinds;
  }
  const int64_t step = (all - last) / 255;
  if (kinds <= 1 || step == 0) return unchanged();
  Table table;
  int64_t below = step / 2;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
    below += counts[i];
  }
  return table;
}

template <typename Make>
cv::Mat by_histogram(const cv::Mat& picture, const Make& make) {
  const auto counts = histograms(picture);
  return looked_up(picture, {make(counts[0]), make(counts[1]), make(counts[2])});
}

/// From a smoothed picture at 0 to the picture at 1, and beyond. The border stays as it is.
cv::Mat with_sharpness(const cv::Mat& picture, double factor) {
  const auto share = static_cast<float>(factor);
  cv::Mat out = picture.clone();
  for (int y = 1; y + 1 < out.rows; ++y) {
    const uint8_t* rows[] = {picture.ptr(y - 1), picture.ptr(y), picture.ptr(y + 1)};
    uint8_t* to = out.ptr(y);
    for (int i = 3; i + 3 < out.cols * 3; ++i) {
      int sum = 4 * rows[1][i];  // with the below its weight is 5, of 13
      for (const uint8_t* row : rows) sum += row[i - 3] + row[i] + row[i + 3];
      const int smooth = (2 * sum + 13) / 26;
      to[i] = blended(smooth, rows[1][i], share);
    }
  }
  return out;
}

/// torch.linspace(first, last, bins)[bin] of float32, which multiplies and adds with one rounding.
/// Two roundings make 16 of 15.999999, and a picture would move by a pixel more.
double between(double first, double last, int64_t bin, int64_t bins) {
  const auto low = static_cast<float>(first), high = static_cast<float>(last);
  const float step = (high - low) / static_cast<float>(bins - 1);
  if (bin < bins / 2) return std::fma(step, static_cast<float>(bin), low);
  return std::fma(-step, static_cast<float>(bins - bin - 1), high);
}

cv::Mat drawn_one(AugmentTable table, Augment kind, int64_t bin, int64_t bins,
                  RandomNumbers& random, const cv::Mat& picture) {
  double strength = augment_strength(table, kind, bin, bins, picture.size());
  if (has_sign(kind) && random.below(2) == 1) strength = -strength;
  return with_augment(kind, strength, picture);
}

Augment drawn_kind(RandomNumbers& random) {
  return static_cast<Augment>(random.below(kNumAugments));
}

}  // namespace

cv::Mat with_augment(Augment kind, double strength, const cv::Mat& picture) {
  switch (kind) {
    case Augment::kIdentity:
      return picture.clone();
    case Augment::kShearX:
      return moved(picture, {.b = tangent_of_shear(strength)});
    case Augment::kShearY:
      return moved(picture, {.d = tangent_of_shear(strength)});
    case Augment::kTranslateX:
      return moved(picture, {.c = -std::trunc(strength)});
    case Augment::kTranslateY:
      return moved(picture, {.f = -std::trunc(strength)});
    case Augment::kRotate:
      return turned(picture, strength);
    case Augment::kBrightness:
      return with_brightness(picture, 1 + strength);
    case Augment::kColor:
      return with_saturation(picture, 1 + strength);
    case Augment::kContrast:
      return with_contrast(picture, 1 + strength);
    case Augment::kSharpness:
      return with_sharpness(picture, 1 + strength);
    case Augment::kPosterize:
      return looked_up(picture, posterized(static_cast<int>(strength)));
    case Augment::kSolarize:
      return looked_up(picture, solarized(strength));
    case Augment::kAutoContrast:
      return by_histogram(picture, stretching);
    case Augment::kEqualize:
      return by_histogram(picture, equalizing);
  }
  return picture.clone();
}

bool has_sign(Augment kind) {
  return kind >= Augment::kShearX && kind <= Augment::kSharpness;
}

bool has_strength(Augment kind) {
  return kind >= Augment::kShearX && kind <= Augment::kSolarize;
}

double augment_strength(AugmentTable table, Augment kind, int64_t bin, int64_t bins,
                        cv::Size size) {
  const bool wide = table == AugmentTable::kTrivialWide;
  const auto up_to = [&](double last) { return between(0, last, bin, bins); };
  constexpr double kShare = 150.0 / 331.0;  // of AutoAugment's networks' pictures
  switch (kind) {
    case Augment::kShearX:
    case Augment::kShearY:
      return up_to(wide ? 0.99 : 0.3);
    case Augment::kTranslateX:
      return up_to(wide ? 32 : kShare * size.width);
    case Augment::kTranslateY:
      return up_to(wide ? 32 : kShare * size.height);
    case Augment::kRotate:
      return up_to(wide ? 135 : 30);
    case Augment::kBrightness:
    case Augment::kColor:
    case Augment::kContrast:
    case Augment::kSharpness:
      return up_to(wide ? 0.99 : 0.9);
    case Augment::kPosterize: {
      const double bins_a_bit = static_cast<double>(bins - 1) / (wide ? 6 : 4);
      return 8 - std::nearbyint(static_cast<float>(bin) / static_cast<float>(bins_a_bit));
    }
    case Augment::kSolarize:
      return between(255, 0, bin, bins);
    default:
      return 0;
  }
}

cv::Mat augmented(const RandAugment& augment, RandomNumbers& random, const cv::Mat& picture) {
  cv::Mat out = picture;
  for (int64_t i = 0; i < augment.num_ops; ++i) {
    const Augment kind = drawn_kind(random);
    out = drawn_one(AugmentTable::kRand, kind, augment.magnitude, augment.num_magnitude_bins,
                    random, out);
  }
  return out;
}

cv::Mat augmented(const TrivialAugmentWide& augment, RandomNumbers& random,
                  const cv::Mat& picture) {
  const Augment kind = drawn_kind(random);
  const int64_t bins = augment.num_magnitude_bins;
  const int64_t bin = has_strength(kind) ? random.below(static_cast<uint32_t>(bins)) : 0;
  return drawn_one(AugmentTable::kTrivialWide, kind, bin, bins, random, picture);
}

}  // namespace lockstep::inline internal
