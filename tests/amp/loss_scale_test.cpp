#include "lockstep/amp_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// The scale after each step of `pattern`: 'x' overflows, '.' does not.
std::vector<double> scales(const LossScaleOptions& options, const std::string& pattern) {
  std::vector<double> list;
  LossScaleState state = first_loss_scale(options);
  for (const char step : pattern) {
    state = next_loss_scale(state, step == 'x', options);
    list.push_back(state.scale);
  }
  return list;
}

constexpr double k64 = 65536;

// From the definition of amp_update_scale: an overflow multiplies by backoff_factor and sets the
// tracker to 0. Otherwise the tracker increases; at growth_interval the scale is multiplied by
// growth_factor and the tracker reset to 0.
TEST(LossScale, GradScalersSequence) {
  const LossScaleOptions options{
      .dynamic = true, .init_scale = k64, .growth_interval = 3, .min_scale = 0};
  EXPECT_EQ(scales(options, "...x..x....xx......"),
            (std::vector<double>{k64, k64, k64 * 2,      // grows with the third
                                 k64,                    // x
                                 k64, k64, k64 / 2,      // two are too few before the next x
                                 k64 / 2, k64 / 2, k64,  // grows
                                 k64,                    // the count restarted
                                 k64 / 2, k64 / 4,       // xx
                                 k64 / 4, k64 / 4, k64 / 2, k64 / 2, k64 / 2, k64}));
  const LossScaleOptions uneven{.dynamic = true,
                                .init_scale = 8,
                                .growth_factor = 1.5,
                                .backoff_factor = 0.25,
                                .growth_interval = 1,
                                .min_scale = 0};
  EXPECT_EQ(scales(uneven, ".x.xx"), (std::vector<double>{12, 3, 4.5, 1.125, 0.28125}));
}

// DynamicLossScaleUpdateCell(512, scale_factor 4, scale_window 2): never below 1.
TEST(LossScale, MindSporesFloor) {
  const LossScaleOptions options{.dynamic = true,
                                 .init_scale = 512,
                                 .growth_factor = 4,
                                 .backoff_factor = 0.25,
                                 .growth_interval = 2};
  EXPECT_EQ(scales(options, "xxxxxx...x"), (std::vector<double>{128, 32, 8, 2, 1, 1, 1, 4, 4, 1}));
  // A scale that starts below it stays there: backing off never raises it.
  EXPECT_EQ(scales({.dynamic = true, .init_scale = 0.5}, "x."), (std::vector<double>{0.5, 0.5}));
}

TEST(LossScale, GrowsNoFurtherThanFloat32) {
  const double largest = std::ldexp(1, 127);
  EXPECT_EQ(scales({.dynamic = true, .init_scale = largest / 2, .growth_interval = 1}, "..x."),
            (std::vector<double>{largest, largest, largest / 2, largest}));
}

TEST(LossScale, StaticOnlyCounts) {
  const LossScaleOptions options{.init_scale = 512};
  LossScaleState state = first_loss_scale(options);
  for (const bool overflow : {true, false, true}) state = next_loss_scale(state, overflow, options);
  EXPECT_EQ(state, (LossScaleState{512, 0, 2}));
}

TEST(LossScale, GoesOnFromWhatWasSaved) {
  const LossScaleState saved{128, 7, 3};
  EXPECT_EQ(first_loss_scale({.dynamic = true, .init_scale = 512}, saved), saved);
  EXPECT_EQ(first_loss_scale({.init_scale = 512}, saved), (LossScaleState{512, 0, 3}));
}

TEST(LossScale, NamesWhatIsOutOfRange) {
  const auto message = [](const LossScaleOptions& options) {
    return std::string(error_of([&] { options.validate(); }).what());
  };
  EXPECT_EQ(message({.init_scale = 0}),
            "loss scale: init_scale is 0; it must be a positive number of float32's normal range");
  EXPECT_NE(message({.init_scale = std::nan("")}).find("init_scale"), std::string::npos);
  EXPECT_NE(message({.growth_factor = 1}).find("growth_factor is 1"), std::string::npos);
  EXPECT_NE(message({.backoff_factor = 1}).find("backoff_factor is 1"), std::string::npos);
  EXPECT_NE(message({.growth_interval = 0}).find("growth_interval is 0"), std::string::npos);
  EXPECT_NE(message({.min_scale = -1}).find("min_scale is -1"), std::string::npos);
  EXPECT_NO_THROW(LossScaleOptions().validate());
}

TEST(AmpLevel, NamesAreApexs) {
  EXPECT_EQ(parse_amp_level("O2"), AmpLevel::kO2);
  for (const auto& name : amp_level_names()) EXPECT_EQ(to_string(parse_amp_level(name)), name);
  EXPECT_EQ(std::string(error_of([] { parse_amp_level("O4"); }).what()),
            "there is no level of mixed precision 'O4' (known: O0, O1, O2, O3)");
}

}  // namespace
}  // namespace lockstep
