#include "lockstep/data/small_images.h"

#include <algorithm>

#include "lockstep/data/cifar10.h"
#include "lockstep/data/cifar100.h"
#include "lockstep/data/image_files.h"
#include "lockstep/data/mnist.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using Path = SmallImages::Path;
using Images = std::shared_ptr<const ImageDataset>;

constexpr SmallImages kTen = {
    "Cifar10Dataset",
    false,
    Cifar10::kShape,
    Cifar10::kClasses,
    50'000,
    10'000,
    [](const Path& dir, Split split) -> Images {
      return std::make_shared<Cifar10>(Cifar10::load(dir, split));
    },
    count_cifar10,
    missing_cifar10_warning,
    [](const Path& dir) { return read_names(find_cifar10(dir), "batches.meta.txt"); }};

template <Cifar100::Labels kLabels>
constexpr SmallImages hundred() {
  const bool coarse = kLabels == Cifar100::Labels::kCoarse;
  return {"Cifar100Dataset",
          coarse,
          Cifar100::kShape,
          coarse ? Cifar100::kCoarseClasses : Cifar100::kFineClasses,
          50'000,
          10'000,
          [](const Path& dir, Split split) -> Images {
            return std::make_shared<Cifar100>(Cifar100::load(dir, split, kLabels));
          },
          count_cifar100,
          missing_cifar100_warning,
          [](const Path& dir) { return cifar100_names(dir, kLabels); }};
}

template <Mnist::Kind kKind>
constexpr SmallImages mnist() {
  return {kKind == Mnist::Kind::kDigits ? "MnistDataset" : "FashionMnistDataset",
          false,
          Mnist::kShape,
          Mnist::kClasses,
          60'000,
          10'000,
          [](const Path& dir, Split split) -> Images {
            return std::make_shared<Mnist>(Mnist::load(dir, split, kKind));
          },
          [](const Path& dir, Split split) { return count_mnist(dir, split, kKind); },
          [](const Path& dir, Split split) { return missing_mnist_warning(dir, split, kKind); },
          [](const Path&) { return mnist_names(kKind); }};
}

constexpr SmallImages kSmallImages[] = {
    kTen, hundred<Cifar100::Labels::kFine>(), hundred<Cifar100::Labels::kCoarse>(),
    mnist<Mnist::Kind::kDigits>(), mnist<Mnist::Kind::kFashion>()};

}  // namespace

const SmallImages& small_images(std::string_view type, bool coarse) {
  const auto* found = std::find_if(
      std::begin(kSmallImages), std::end(kSmallImages),
      [&](const SmallImages& one) { return one.type == type && one.coarse == coarse; });
  if (found != std::end(kSmallImages)) return *found;
  throw Error(ErrorCode::kInternal, "no small images of type " + std::string(type));
}

}  // namespace lockstep::inline internal
