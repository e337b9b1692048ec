#include "lockstep/train/task/ranking.h"

#include <bit>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

bool has_class(RankedSample sample) {
  return (sample & 1) != 0;
}

bool same_score(RankedSample a, RankedSample b) {
  return a >> 1 == b >> 1;
}

/// Samples of equal score.
struct Group {
  size_t end = 0;  ///< Of its samples in the list.
  int64_t with = 0;
  int64_t without = 0;
};

Group group_at(std::span<const RankedSample> sorted, size_t begin) {
  Group group{begin};
  for (; group.end < sorted.size() && same_score(sorted[group.end], sorted[begin]); ++group.end) {
    ++(has_class(sorted[group.end]) ? group.with : group.without);
  }
  return group;
}

}  // namespace

RankedSample ranked_sample(float score, bool present) {
  // Floats as whole numbers of the same order. Adding 0 makes -0 equal to 0.
  constexpr uint32_t kSign = 0x80000000;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  uint32_t order = (bits & kSign) != 0 ? ~bits : bits | kSign;
  if (std::isnan(score)) order = 0;
  return RankedSample{order} << 1 | (present ? 1 : 0);
}

RankFigures rank_figures(std::span<const RankedSample> sorted) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  int64_t with = 0;
  for (const auto sample : sorted) with += has_class(sample) ? 1 : 0;
  const int64_t without = static_cast<int64_t>(sorted.size()) - with;
  int64_t halves = 0;        // of pairs in the right order
  int64_t lower = 0;         // samples without the class, of lower scores
  int64_t left_with = with;  // samples with the class, from this score up
  double precision_sum = 0;
  for (size_t at = 0; at < sorted.size();) {
    const Group group = group_at(sorted, at);
    halves += group.with * (2 * lower + group.without);
    const auto from_here = static_cast<double>(sorted.size() - at);
    precision_sum += static_cast<double>(group.with) * (static_cast<double>(left_with) / from_here);
    lower += group.without;
    left_with -= group.with;
    at = group.end;
  }
  RankFigures figures{kNone, kNone};
  if (with > 0) figures.average_precision = precision_sum / static_cast<double>(with);
  if (with == 0 || without == 0) return figures;
  figures.auc =
      static_cast<double>(halves) / (2 * static_cast<double>(with) * static_cast<double>(without));
  return figures;
}

}  // namespace lockstep
