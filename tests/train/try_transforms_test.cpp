#include "lockstep/train/try_transforms.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// A data set that makes no batch.
class UnmadeBatches final : public BatchMaker {
 public:
  int64_t size() const override { return 1; }
  Batch make(const BatchRows&) const override {
    throw Error(ErrorCode::kCorrupt, "data: image 0: Enlarge: no room");
  }
};

/// The fault of a data set whose own transform refuses its sample. Without that transform the data
/// set has another one.
std::string fault_when_tried(ErrorCode code_without_own) {
  Config config;
  config.train.dataset.where = "c.yaml:3";
  config.train.dataset.transforms = {
      {OwnTransform{"Enlarge", PlainTransform([](Picture&) {})}, "c.yaml:5"}};
  const auto make = [&](const Config& given, bool) -> std::unique_ptr<const BatchMaker> {
    if (!given.train.dataset.transforms.empty()) return std::make_unique<UnmadeBatches>();
    throw Error(code_without_own, "of the probe");
  };
  return error_of([&] { try_own_transforms(config, {.train = true}, make); }).what();
}

TEST(TryTransforms, ASizeThatIsRefusedWithoutOwnOnesIsNoFaultOfTheData) {
  EXPECT_EQ(fault_when_tried(ErrorCode::kInvalidArgument),
            "c.yaml:5: train.dataset.transform_pipeline: data: image 0: Enlarge: no room");
  for (const auto code : {ErrorCode::kCorrupt, ErrorCode::kNotFound, ErrorCode::kIo}) {
    EXPECT_EQ(fault_when_tried(code), "c.yaml:3: train.dataset: data: image 0: Enlarge: no room");
  }
}

}  // namespace
}  // namespace lockstep
