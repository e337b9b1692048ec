#pragma once
// Images in memory as pictures, for the transforms that ImageTransform does not take.

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/data/dataset.h"
#include "lockstep/data/pictures/reader.h"

namespace lockstep::inline internal {

/// The first `count` images of `data`; a grey one has three equal channels. `name` is in front of
/// "image 17" in messages.
std::shared_ptr<const PictureSource> memory_pictures(std::shared_ptr<const ImageDataset> data,
                                                     int64_t count, std::string name);

}  // namespace lockstep::inline internal
