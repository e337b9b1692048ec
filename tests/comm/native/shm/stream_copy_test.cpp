#include "lockstep/comm/native/shm/stream_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::shm {
namespace {

TEST(StreamCopy, CopiesFromAndToAnyPlaceAndNothingBeside) {
  constexpr std::byte kFree{0xEE};
  constexpr size_t kMost = 300;
  std::vector<std::byte> from(kMost + 64);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 199);
  for (const size_t begin : {0, 1, 16, 63}) {
    for (const size_t place : {0, 1, 15, 16, 48, 63}) {
      for (size_t bytes = 0; bytes < kMost; ++bytes) {
        std::vector<std::byte> to(kMost + 128, kFree);
        copy_past_cache(to.data() + place, from.data() + begin, bytes);
        std::vector<std::byte> wanted(to.size(), kFree);
        for (size_t i = 0; i < bytes; ++i) wanted[place + i] = from[begin + i];
        ASSERT_EQ(to, wanted) << begin << " " << place << " " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::shm
