// Transforms of one's own, for the tests of `lockstep train`: a shared library for --plugin.

#include <lockstep/registry.h>

#include <atomic>
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
    for (uint8_t& byte : picture.bytes()) byte ^= static_cast<uint8_t>(random.below(most + 1));
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

const TransformPart kRefusing("Refusing", "refuses every picture", [](Section&) {
  return [](Picture&) {
    throw lockstep::Error(lockstep::ErrorCode::kInvalidArgument, "it never fits");
  };
});

const TransformPart kHalving("Halving", "halves the size", [](Section&) {
  return [](Picture& picture) { picture = Picture(picture.width() / 2, picture.height() / 2); };
});

std::atomic<uint8_t> calls{0};

const TransformPart kCounting("Counting", "depends on the calls before", [](Section&) {
  return [](Picture& picture) { picture.bytes()[0] = ++calls; };
});

}  // namespace
