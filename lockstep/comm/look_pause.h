#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep::inline internal {

/// How often a rank that waits looks for errors of others.
inline constexpr std::chrono::milliseconds kLookPause{100};

/// Pause between the questions that each of `size` ranks asks the store while it waits. It grows
/// with the size: the questions of all ranks together are some 4,000 per second.
inline std::chrono::milliseconds look_pause(size_t size) {
  constexpr std::chrono::microseconds kPerRank{250};
  return std::max(kLookPause,
                  std::chrono::duration_cast<std::chrono::milliseconds>(size * kPerRank));
}

}  // namespace lockstep::inline internal
