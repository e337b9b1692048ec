#include "lockstep/checkpoint/keep_policy.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

std::string step_name(int64_t step) {
  std::string name = std::to_string(step);
  return name.insert(0, 1, 's');
}

std::vector<CheckpointEntry> entries(const std::vector<std::optional<double>>& metrics) {
  std::vector<CheckpointEntry> list;
  for (const auto& metric : metrics) {
    const int64_t step = static_cast<int64_t>(list.size()) + 1;
    list.push_back({step_name(step), step, metric});
  }
  return list;
}

TEST(KeepPolicy, AllKeepsAll) {
  EXPECT_EQ(plan_removal(entries({1, 2, 3}), {Keep::kAll, 0, true}), Names{});
}

TEST(KeepPolicy, LatestKeepsTheNewest) {
  const std::vector<std::optional<double>> none(5);
  EXPECT_EQ(plan_removal(entries(none), {Keep::kLatest, 2, true}), (Names{"s1", "s2", "s3"}));
  EXPECT_EQ(plan_removal(entries(none), {Keep::kLatest, 5, true}), Names{});
  EXPECT_EQ(plan_removal({}, {Keep::kLatest, 1, true}), Names{});
}

TEST(KeepPolicy, LatestKeepsTheBestToo) {
  EXPECT_EQ(plan_removal(entries({0.5, 0.9, 0.7, 0.8}), {Keep::kLatest, 1, true}),
            (Names{"s1", "s3"}));
  EXPECT_EQ(plan_removal(entries({0.5, 0.9, 0.7, 0.8}), {Keep::kLatest, 1, false}),
            (Names{"s2", "s3"}));
}

TEST(KeepPolicy, TopKRanksByMetricAndKeepsTheNewest) {
  EXPECT_EQ(plan_removal(entries({0.9, 0.1, 0.8, 0.2, 0.3}), {Keep::kTopK, 2, true}),
            (Names{"s2", "s4"}));
  EXPECT_EQ(plan_removal(entries({0.9, 0.1, 0.8, 0.2, 0.3}), {Keep::kTopK, 2, false}),
            (Names{"s1", "s3"}));
}

TEST(KeepPolicy, WithoutMetricRanksLast) {
  EXPECT_EQ(plan_removal(entries({0.1, std::nullopt, std::nullopt, 0.2}), {Keep::kTopK, 2, true}),
            (Names{"s2", "s3"}));
}

TEST(KeepPolicy, OfEqualsTheFirstIsTheBest) {
  for (const bool higher : {false, true}) {
    auto list = entries({0.5, 0.5, 0.5});
    EXPECT_EQ(best_checkpoint(list, higher)->name, "s1");
    std::swap(list.front(), list.back());
    EXPECT_EQ(best_checkpoint(list, higher)->name, "s1");
  }
}

TEST(KeepPolicy, BesideTheBestTopKKeepsTheNewerOfEquals) {
  EXPECT_EQ(plan_removal(entries({0.5, 0.5, 0.5, 0.4}), {Keep::kTopK, 1, true}), Names{"s2"});
  EXPECT_EQ(plan_removal(entries({0.5, 0.5, 0.5, 0.6}), {Keep::kTopK, 1, false}), Names{"s2"});
}

TEST(KeepPolicy, AnOrderIsTheOneOfThePolicy) {
  const CheckpointEntry old_and_good{"a", 1, 0.9};
  const CheckpointEntry new_and_bad{"b", 2, 0.1};
  for (const Keep keep : {Keep::kAll, Keep::kLatest}) {
    EXPECT_TRUE(keeps_rather({keep, 1, true}, new_and_bad, old_and_good));
    EXPECT_FALSE(keeps_rather({keep, 1, true}, old_and_good, new_and_bad));
  }
  EXPECT_TRUE(keeps_rather({Keep::kTopK, 1, true}, old_and_good, new_and_bad));
  EXPECT_TRUE(keeps_rather({Keep::kTopK, 1, false}, new_and_bad, old_and_good));
  EXPECT_FALSE(keeps_rather({Keep::kTopK, 1, true}, old_and_good, old_and_good));
}

TEST(KeepPolicy, NoMetricNoBest) {
  EXPECT_FALSE(best_checkpoint(entries({std::nullopt}), true));
  EXPECT_FALSE(best_checkpoint({}, true));
}

TEST(KeepPolicy, ChecksItsInput) {
  EXPECT_EQ(error_of([] {
              plan_removal({}, {Keep::kTopK, 0, true});
            }).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
