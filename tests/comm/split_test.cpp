#include "lockstep/comm/topology.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Split, MembersAreOrderedByKeyThenRank) {
  const ColorKey all[] = {{1, 5}, {0, 0}, {1, -2}, {1, 5}, {-1, 0}, {0, 0}};
  EXPECT_EQ(members_of_color(all, 1), (std::vector<int>{2, 0, 3}));
  EXPECT_EQ(members_of_color(all, 0), (std::vector<int>{1, 5}));
  EXPECT_TRUE(members_of_color(all, 7).empty());
  EXPECT_TRUE(members_of_color(all, -1).empty());
}

}  // namespace
}  // namespace lockstep
