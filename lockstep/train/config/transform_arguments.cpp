#include "lockstep/train/config/transform_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/train/config/node.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kMostWhole = 1'000'000;

/// Earlier files of runs may have [0.5] for 0.5.
Node* single_item(ConfigSection& args, const std::string& key) {
  Node* node = args.any(key);
  if (node != nullptr && node->kind == Node::Kind::kList && node->items.size() == 1) {
    Node item = std::move(node->items[0]);
    *node = std::move(item);
  }
  return node;
}

}  // namespace

void read_one(ConfigSection& args, const std::string& key, double& value, Range<double> range,
              const std::string& about) {
  single_item(args, key);
  args.read(key, value, range, about);
}

void read_whole_one(ConfigSection& args, const std::string& key, int64_t& value, int64_t least,
                    const std::string& about) {
  double number = 0;
  Node* node = single_item(args, key);
  if (node != nullptr && read_number(*node, &number) && number == std::floor(number) &&
      std::abs(number) <= kMostWhole) {
    node->text = std::to_string(static_cast<int64_t>(number));
  }
  args.read(key, value, {least, kMostWhole}, about);
}

std::vector<int> require_sides(ConfigSection& args, const std::string& about,
                               const std::string& fallback) {
  constexpr int kLongest = 1 << 14;
  args.require("size", "is missing: one whole number, or [height, width]");
  args.record("size", "a whole number, or [height, width]", fallback, about);
  const auto sides = args.number_or_list("size");
  if (!args.has("size")) return {1};  // keys are being listed
  const bool right = std::all_of(sides.begin(), sides.end(), [](double side) {
    return side >= 1 && side <= kLongest && side == std::floor(side);
  });
  if (sides.empty() || sides.size() > 2 || !right) {
    args.fail("size", fmt::format("must be one whole number or [height, width], each from 1 to {}",
                                  kLongest));
  }
  return {sides.begin(), sides.end()};
}

PictureSize require_size(ConfigSection& args, const std::string& about) {
  const auto sides = require_sides(args, about);
  return {sides.back(), sides.front()};
}

void read_prob(ConfigSection& args, double& prob) {
  const bool short_name = args.has("p");
  if (short_name) read_one(args, "p", prob, {0, 1}, "");
  if (!short_name || args.has("prob")) {
    read_one(args, "prob", prob, {0, 1}, "its probability; also as `p`");
  }
  for (const auto* key : {"p", "prob"}) args.any(key);
}

void read_ascending(ConfigSection& args, const std::string& key, std::pair<double, double>& value,
                    Range<double> range, const std::string& about) {
  const auto kind =
      fmt::format("two numbers from {} to {}, in ascending order", range.lo, range.hi);
  args.record(key, kind, fmt::format("[{}, {}]", value.first, value.second), about);
  const auto ends = args.number_or_list(key);
  if (!args.has(key)) return;
  if (ends.size() != 2 || !(ends[0] >= range.lo && ends[0] <= ends[1] && ends[1] <= range.hi)) {
    args.fail(key, "must be " + kind);
  }
  value = {ends[0], ends[1]};
}

void read_jitter(ConfigSection& args, const std::string& key, std::pair<double, double>& value,
                 double middle, Range<double> range, const std::string& about) {
  args.record(key, "a number x, or two", fmt::format("[{}, {}]", value.first, value.second), about);
  auto ends = args.number_or_list(key);
  if (!args.has(key)) return;
  if (ends.size() == 1) {
    if (ends[0] < 0) args.fail(key, "must not be below 0");
    ends = {std::max(middle - ends[0], range.lo), middle + ends[0]};
  }
  if (ends.size() != 2 || !(ends[0] >= range.lo && ends[0] <= ends[1] && ends[1] <= range.hi)) {
    args.fail(key, fmt::format("must be one number, or two in ascending order from {} to {}",
                               range.lo, range.hi));
  }
  value = {ends[0], ends[1]};
}

void read_mean_and_std(ConfigSection& args, Normalize& normalize, const char* about,
                       const char* fallback, ImageKind images) {
  const bool grey = images == ImageKind::kSmall;
  const auto read = [&](const char* key, std::vector<double>& values, const char* line) {
    args.record(key, "three numbers", fallback, line);
    const auto given = args.number_or_list(key);
    if (!args.has(key)) return;
    if (given.size() != 3 && !(grey && given.size() == 1)) {
      args.fail(key,
                grey ? "must be three numbers, or one of grey images" : "must be three numbers");
    }
    values = given;
  };
  read("mean", normalize.mean, about);
  read("std", normalize.std, "the same");
  const auto fits_float = [](double value) { return std::isfinite(static_cast<float>(value)); };
  for (const auto* values : {&normalize.mean, &normalize.std}) {
    const char* key = values == &normalize.std ? "std" : "mean";
    if (!std::all_of(values->begin(), values->end(), fits_float)) {
      args.fail(key, "has a number that is too large");
    }
  }
  for (const double value : normalize.std) {
    if (!(static_cast<float>(value) > 0)) args.fail("std", "must be above 0");
  }
  const size_t of_mean = normalize.mean.size(), of_std = normalize.std.size();
  if (of_mean == of_std) return;
  const std::string must = "must have as many numbers as ";
  if (args.has("mean")) args.fail("mean", fmt::format("{}std, {}, not {}", must, of_std, of_mean));
  args.fail("std", fmt::format("{}mean, {}, not {}", must, of_mean, of_std));
}

}  // namespace lockstep::inline internal
