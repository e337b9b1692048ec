#pragma once
// A registered transform of pictures at work; see picture.h.

#include <string>

#include "lockstep/base/philox.h"
#include "lockstep/base/transform_failed.h"
#include "lockstep/picture.h"

namespace lockstep::inline internal {

/// A registered transform with its settings read. Draws what it likes.
struct OwnTransform {
  std::string name;
  PictureTransform transform;
};

/// The next words of a stream, for what draws from RandomNumbers.
class StreamNumbers final : public RandomNumbers {
 public:
  explicit StreamNumbers(Philox& stream) : stream_(stream) {}
  uint32_t next() override { return stream_.next(); }

 private:
  Philox& stream_;
};

/// Changes `picture`, and draws from `random`. Errors: kCorrupt for an Error of the transform, with
/// the transform's name in front; TransformFailed for any other exception, and for a transform that
/// moved its picture away.
void apply_own_transform(const OwnTransform& own, Picture& picture, RandomNumbers& random);

/// The same for a transform that must keep the picture's size. Errors: TransformFailed, too, if it
/// does not.
void apply_in_size(const OwnTransform& own, Picture& picture, Philox& random);

}  // namespace lockstep::inline internal
