#include "lockstep/train/config/built_in_makers.h"

#include <optional>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

std::optional<BuiltInMakers>& all_makers() {
  static std::optional<BuiltInMakers> makers;
  return makers;
}

}  // namespace

const BuiltInMakers& built_in_makers() {
  if (all_makers()) return *all_makers();
  throw Error(ErrorCode::kInternal, "a built-in part was made before the trainer began");
}

void set_built_in_makers(const BuiltInMakers& makers) {
  all_makers() = makers;
}

}  // namespace lockstep::inline internal
