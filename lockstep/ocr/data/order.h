#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::ocr {

/// round(count * ratio), halves to the even number as in Python; at most `count`.
int64_t sampled_count(int64_t count, double ratio);

/// 0 .. count-1 in a random order from (seed, stream).
std::vector<uint32_t> shuffled(uint32_t count, uint64_t seed, uint64_t stream);

}  // namespace lockstep::ocr
