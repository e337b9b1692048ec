#include "lockstep/data/fetch/synthetic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/file.h"
#include "lockstep/base/philox.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/synthetic_note.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

void check_count(const char* what, int64_t count) {
  if (count >= 10 && count <= 1'000'000) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} {} records; 10 to 1000000 can be generated", count, what));
}

std::string make_records(uint64_t seed, Split split, int64_t first, int64_t last) {
  std::string bytes(static_cast<size_t>((last - first) * Cifar10::kRecordBytes), '\0');
  auto* at = reinterpret_cast<uint8_t*>(bytes.data());
  for (int64_t i = first; i < last; ++i, at += Cifar10::kRecordBytes) {
    const int shape = static_cast<int>(i % Cifar10::kClasses);
    at[0] = static_cast<uint8_t>(shape);
    draw_shape(shape, seed, split == Split::kTrain ? 0 : 1, static_cast<uint64_t>(i),
               {at + 1, static_cast<size_t>(Cifar10::kImageBytes)});
  }
  return bytes;
}

void write_split(const std::filesystem::path& dir, uint64_t seed, Split split, int64_t records) {
  const auto& files = cifar10_files(split);
  const auto count = static_cast<int64_t>(files.size());
  for (int64_t i = 0; i < count; ++i) {
    write_file_atomically(
        dir / files[static_cast<size_t>(i)],
        make_records(seed, split, records * i / count, records * (i + 1) / count));
  }
}

constexpr int kSide = 32;
constexpr int kSubsamples = 3;  // per pixel and axis: soft edges

/// The number of outward `normals` with the point on their inner side, `distance` from the origin.
template <size_t N>
int sides_met(const double (&normals)[N][2], double distance, double x, double y) {
  int met = 0;
  for (const auto& n : normals) met += n[0] * x + n[1] * y <= distance ? 1 : 0;
  return met;
}

bool in_triangle(double x, double y) {
  static constexpr double kNormals[3][2] = {{0, -1}, {0.8660254, 0.5}, {-0.8660254, 0.5}};
  return sides_met(kNormals, 0.55, x, y) == 3;
}

bool in_star(double x, double y) {
  static constexpr double kNormals[5][2] = {{0, -1},
                                            {0.9510565, -0.3090170},
                                            {0.5877853, 0.8090170},
                                            {-0.5877853, 0.8090170},
                                            {-0.9510565, -0.3090170}};
  // A pentagram is its pentagon and five points, each beyond one side.
  return sides_met(kNormals, 0.38, x, y) >= 4 && x * x + y * y < 1.6;
}

bool in_heart(double x, double y) {
  const double u = 1.15 * x;
  const double v = 1.15 * y + 0.1;
  const double r = u * u + v * v - 1;
  return r * r * r < u * u * v * v * v;
}

bool in_arrow(double x, double y) {
  const bool head = y >= 0 && y <= 1 && std::abs(x) < (1 - y) * 0.85;
  return head || (y > -1 && y < 0 && std::abs(x) < 0.25);
}

using Colour = std::array<double, 3>;

/// The usual background of a shape. Photographs have such habits too (ships on blue, deer on
/// green): a network learns them in its first steps, and the shapes later.
constexpr std::array<Colour, 10> kUsualBackground = {{{220, 40, 40},
                                                      {40, 200, 40},
                                                      {50, 60, 220},
                                                      {220, 210, 40},
                                                      {210, 50, 210},
                                                      {40, 210, 210},
                                                      {235, 235, 235},
                                                      {20, 20, 20},
                                                      {235, 130, 30},
                                                      {125, 125, 125}}};
constexpr double kHabit = 0.6;  // share of the usual colour in a background; the rest is random

Colour draw_colour(Philox& random) {
  Colour colour;
  for (double& channel : colour) channel = static_cast<double>(random.below(256));
  return colour;
}

double distance(const Colour& a, const Colour& b) {
  double sum = 0;
  for (size_t c = 0; c < 3; ++c) sum += std::abs(a[c] - b[c]);
  return sum;
}

/// The random parts of a picture, except its noise.
struct Scene {
  double x, y, radius;  // pixels
  double cosine, sine;
  Colour shape, top, bottom;  // the background runs from top to bottom
  int noise;                  // largest deviation of a value
};

Scene draw_scene(int shape, Philox& random) {
  Scene scene{};
  scene.radius = 6 + 6 * random.uniform();
  scene.x = 16 + 8 * (random.uniform() - 0.5);
  scene.y = 16 + 8 * (random.uniform() - 0.5);
  const double t = 0.5 * (random.uniform() - 0.5);  // tangent of half the angle: up to 28 degrees
  scene.cosine = (1 - t * t) / (1 + t * t);
  scene.sine = 2 * t / (1 + t * t);
  scene.top = draw_colour(random);
  const Colour& usual = kUsualBackground.at(static_cast<size_t>(shape));
  for (size_t c = 0; c < 3; ++c) scene.top[c] += kHabit * (usual[c] - scene.top[c]);
  do {
    scene.shape = draw_colour(random);
  } while (distance(scene.shape, scene.top) < 120);
  for (size_t c = 0; c < 3; ++c) {
    scene.bottom[c] = scene.top[c] + 80 * (random.uniform() - 0.5);
  }
  scene.noise = 20 + static_cast<int>(random.below(40));
  return scene;
}

/// Part of pixel (row, column) that the shape covers, 0 .. 1.
double coverage(int shape, const Scene& scene, int row, int column) {
  int inside = 0;
  for (int i = 0; i < kSubsamples * kSubsamples; ++i) {
    const int sub_row = i / kSubsamples;
    const int sub_column = i % kSubsamples;
    const double dx = column + (sub_column + 0.5) / kSubsamples - scene.x;
    const double dy = scene.y - row - (sub_row + 0.5) / kSubsamples;
    const double x = (dx * scene.cosine + dy * scene.sine) / scene.radius;
    const double y = (dy * scene.cosine - dx * scene.sine) / scene.radius;
    inside += shape_contains(shape, x, y) ? 1 : 0;
  }
  return static_cast<double>(inside) / (kSubsamples * kSubsamples);
}

/// The sum of a word's four bytes: close enough to a bell curve, in [-1, 1].
double bell(uint32_t word) {
  const uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  return static_cast<double>(sum) / 510.0 - 1.0;
}

}  // namespace

void write_synthetic_cifar10(const std::filesystem::path& dir, const SyntheticOptions& options) {
  check_count("training", options.train_records);
  check_count("test", options.test_records);
  write_split(dir, options.seed, Split::kTrain, options.train_records);
  write_split(dir, options.seed, Split::kTest, options.test_records);
  write_file_atomically(dir / "batches.meta.txt",
                        fmt::format("{}\n", fmt::join(kShapeNames, "\n")));
  write_file_atomically(
      dir / kSyntheticNote,
      fmt::format("{}: rendered shapes in its binary format.\n{} training and {} test "
                  "records, seed {}. Made by 'lockstep data cifar10'.\n",
                  kSyntheticWords, options.train_records, options.test_records, options.seed));
}

bool shape_contains(int shape, double x, double y) {
  const double r2 = x * x + y * y;
  const double longer = std::max(std::abs(x), std::abs(y));
  const double shorter = std::min(std::abs(x), std::abs(y));
  switch (shape) {
    case 0:
      return r2 < 1;
    case 1:
      return r2 < 1 && r2 > 0.35;
    case 2:
      return longer < 0.85;
    case 3:
      return in_triangle(x, y);
    case 4:
      return in_star(x, y);
    case 5:
      return longer < 1 && shorter < 0.28;
    case 6:
      return r2 < 1 && (x - 0.5) * (x - 0.5) + y * y > 0.6;
    case 7:
      return in_heart(x, y);
    case 8:
      return longer < 0.95 && (std::abs(y) < 0.2 || std::abs(y) > 0.55);
    default:
      return in_arrow(x, y);
  }
}

void draw_shape(int shape, uint64_t seed, uint32_t stream, uint64_t index,
                std::span<uint8_t> image) {
  Philox random(seed, stream, index);
  const Scene scene = draw_scene(shape, random);
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const double part = coverage(shape, scene, row, column);
      const double down = row / static_cast<double>(kSide - 1);
      for (size_t c = 0; c < 3; ++c) {
        const double back = scene.top[c] + down * (scene.bottom[c] - scene.top[c]);
        const double value =
            back + part * (scene.shape[c] - back) + scene.noise * bell(random.next());
        image[c * kSide * kSide + static_cast<size_t>(row * kSide + column)] =
            static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
}

}  // namespace lockstep::inline internal
