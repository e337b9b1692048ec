#include "lockstep/parallel/bucket_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/error.h"

namespace lockstep {

std::string bucket_key(int bucket, const std::string& name) {
  return fmt::format("{}.{}", bucket, name);
}

void LoadedBuckets::take(const std::string& key, const at::Tensor& place) {
  const auto node = tensors_.extract(key);
  if (node.empty()) return;
  const at::Tensor& loaded = node.mapped();
  if (loaded.sizes() != place.sizes() || loaded.scalar_type() != place.scalar_type()) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("state '{}' of a hook is {} [{}], not {} [{}]", key,
                            c10::toString(loaded.scalar_type()), fmt::join(loaded.sizes(), ", "),
                            c10::toString(place.scalar_type()), fmt::join(place.sizes(), ", ")));
  }
  place.copy_(loaded);
}

}  // namespace lockstep
