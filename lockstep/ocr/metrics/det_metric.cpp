#include "lockstep/ocr/metrics/det_metric.h"

#include <algorithm>

#include "lockstep/ocr/geometry/region.h"

namespace lockstep::ocr {
namespace {

constexpr double kLeastIou = 0.5;
constexpr double kLeastCover = 0.5;  // share of a detection inside an ignored region

struct Truths {
  std::vector<Region> counted;
  std::vector<Region> ignored;
};

Truths valid_truths(std::span<const TextRegion> regions) {
  Truths truths;
  for (const TextRegion& one : regions) {
    Region region(one.polygon);
    if (!region.valid()) continue;
    (one.ignored ? truths.ignored : truths.counted).push_back(std::move(region));
  }
  return truths;
}

bool is_ignored(const Region& found, const std::vector<Region>& ignored) {
  return std::any_of(ignored.begin(), ignored.end(), [&](const Region& region) {
    return found.intersection_area(region) > kLeastCover * found.area();
  });
}

std::vector<Region> counted_detections(std::span<const Polygon> found,
                                       const std::vector<Region>& ignored) {
  std::vector<Region> counted;
  for (const Polygon& polygon : found) {
    Region region(polygon);
    if (region.valid() && !is_ignored(region, ignored)) counted.push_back(std::move(region));
  }
  return counted;
}

DetCounts result(const std::vector<bool>& taken, size_t wrong) {
  const auto matched = static_cast<double>(std::count(taken.begin(), taken.end(), true));
  return {.matched = matched,
          .missed = static_cast<double>(taken.size()) - matched,
          .wrong = static_cast<double>(wrong)};
}

// Each detection takes the first match, even one that is taken already.
DetCounts many_to_one(const std::vector<Region>& truths, const std::vector<Region>& found) {
  std::vector<bool> taken(truths.size());
  size_t wrong = 0;
  for (const Region& region : found) {
    const auto fit = std::find_if(truths.begin(), truths.end(), [&](const Region& truth) {
      return region.iou(truth) > kLeastIou;
    });
    if (fit == truths.end()) {
      ++wrong;
    } else {
      taken[static_cast<size_t>(fit - truths.begin())] = true;
    }
  }
  return result(taken, wrong);
}

// Each truth takes the first free match among the detections.
DetCounts pairs(const std::vector<Region>& truths, const std::vector<Region>& found) {
  std::vector<bool> taken(truths.size());
  std::vector<bool> used(found.size());
  for (size_t i = 0; i < truths.size(); ++i) {
    for (size_t j = 0; j < found.size() && !taken[i]; ++j) {
      if (used[j] || !(truths[i].iou(found[j]) > kLeastIou)) continue;
      taken[i] = used[j] = true;
    }
  }
  return result(taken, static_cast<size_t>(std::count(used.begin(), used.end(), false)));
}

double ratio(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

}  // namespace

DetCounts& DetCounts::operator+=(const DetCounts& other) {
  matched += other.matched;
  missed += other.missed;
  wrong += other.wrong;
  return *this;
}

DetCounts det_counts(std::span<const Polygon> found, std::span<const TextRegion> truth,
                     const DetMetricOptions& options) {
  const Truths truths = valid_truths(truth);
  const std::vector<Region> counted = counted_detections(found, truths.ignored);
  return options.one_to_one ? pairs(truths.counted, counted) : many_to_one(truths.counted, counted);
}

DetFigures det_figures(const DetCounts& counts) {
  DetFigures figures;
  figures.recall = ratio(counts.matched, counts.matched + counts.missed);
  figures.precision = ratio(counts.matched, counts.matched + counts.wrong);
  figures.f_score =
      ratio(2 * figures.recall * figures.precision, figures.recall + figures.precision);
  return figures;
}

}  // namespace lockstep::ocr
