#include "lockstep/comm/native/tcp/schedule.h"

#include <algorithm>
#include <bit>

namespace lockstep::tcp {

Rounds rounds_of(int64_t count, int64_t unit_bytes) {
  return {count, std::max<int64_t>(1, kRoundBytes / unit_bytes)};
}

Rounds flowing_rounds_of(int64_t count, int64_t unit_bytes, int hosts, int slices) {
  const int64_t bytes = std::min(kRoundBytes, kPieceBytes * hosts * slices);
  return {count, std::max<int64_t>(1, bytes / unit_bytes)};
}

Choice choose(int64_t bytes, int hosts, int slices) {
  Choice choice;
  choice.slices = static_cast<int>(std::clamp<int64_t>(bytes / kMinSliceBytes, 1, slices));
  choice.one_step = bytes * (hosts - 1) <= kOneStepBytes;
  return choice;
}

Pairs choose_pairs(int64_t bytes, int hosts) {
  static_assert(kPairsBytes <= 4 * kPieceBytes);  // one round
  if (hosts < 4 || !std::has_single_bit(static_cast<uint32_t>(hosts))) return Pairs::kNone;
  const int levels = std::countr_zero(static_cast<uint32_t>(hosts));
  if (bytes * levels <= kOneStepBytes) return Pairs::kWhole;
  return bytes <= kPairsBytes ? Pairs::kHalves : Pairs::kNone;
}

}  // namespace lockstep::tcp
