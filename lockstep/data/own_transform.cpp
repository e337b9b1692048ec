#include "lockstep/data/own_transform.h"

#include <fmt/format.h>

#include <variant>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

void call_own(const PictureTransform& transform, Picture& picture, RandomNumbers& random) {
  if (const auto* plain = std::get_if<PlainTransform>(&transform)) return (*plain)(picture);
  std::get<RandomTransform>(transform)(picture, random);
}

}  // namespace

void apply_own_transform(const OwnTransform& own, Picture& picture, RandomNumbers& random) {
  run_transform(own.name, [&] {
    try {
      call_own(own.transform, picture, random);
    } catch (const Error& error) {  // whatever its code: the picture is unusable
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: {}", own.name, error.what()));
    }
  });
  const auto size = static_cast<size_t>(picture.width()) * static_cast<size_t>(picture.height());
  if (picture.bytes().size() == 3 * size) return;
  throw TransformFailed(fmt::format("the transform {} has moved its picture away", own.name));
}

void apply_in_size(const OwnTransform& own, Picture& picture, Philox& random) {
  const int width = picture.width();
  const int height = picture.height();
  StreamNumbers numbers(random);
  apply_own_transform(own, picture, numbers);
  if (picture.width() == width && picture.height() == height) return;
  throw TransformFailed(
      fmt::format("the transform {} made {} x {} pixels of {} x {}: only pictures of a classifier "
                  "may change their size",
                  own.name, picture.width(), picture.height(), width, height));
}

}  // namespace lockstep::inline internal
