// Transforms of one's own, for the tests of `lockstep train`: a shared library for --plugin.

#include <lockstep/registry.h>

#include <algorithm>
#include <stdexcept>

namespace {

using lockstep::Picture;
using lockstep::RandomNumbers;
using lockstep::Section;
using lockstep::TransformPart;

const TransformPart kSpeckle("RandomSpeckle", "noise on each byte", [](Section& settings) {
  int64_t most = 16;
  settings.read("most", most, {1, 255}, "of 255");
  return [=](Picture& picture, RandomNumbers& random) {
    for (uint8_t& byte : picture.bytes()) {
      const int64_t noisy = byte + random.below(2 * most + 1) - most;
      byte = static_cast<uint8_t>(std::clamp<int64_t>(noisy, 0, 255));
    }
  };
});

const TransformPart kPicky("Picky", "refuses some pictures", [](Section&) {
  return [](Picture& picture) {
    if (picture.bytes()[0] % 4 != 0) return;
    throw lockstep::Error(lockstep::ErrorCode::kInvalidArgument, "its first byte is a multiple");
  };
});

const TransformPart kBroken("Broken", "fails always", [](Section&) {
  return [](Picture&) { throw std::out_of_range("no such row"); };
});

}  // namespace
