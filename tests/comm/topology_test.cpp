#include "lockstep/comm/topology.h"

#include <gtest/gtest.h>

#include "lockstep/comm/spans.h"

namespace lockstep {
namespace {

TEST(Topology, GroupsRanksByHostInOrderOfFirstRank) {
  const std::vector<std::string> ids = {"b", "a", "b", "c", "a"};
  const Topology topology = make_topology(ids);
  ASSERT_EQ(topology.num_hosts(), 3);
  EXPECT_EQ(topology.hosts[0], (std::vector<int>{0, 2}));
  EXPECT_EQ(topology.hosts[1], (std::vector<int>{1, 4}));
  EXPECT_EQ(topology.host_of, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(topology.local_rank_of, (std::vector<int>{0, 0, 1, 0, 1}));
}

TEST(Slices, TileTheBufferAtGranules) {
  for (const int64_t count : {0, 1, 15, 16, 17, 100, 1001}) {
    for (int parts = 1; parts <= 9; ++parts) {
      int64_t next = 0;
      for (int index = 0; index < parts; ++index) {
        const Span slice = slice_of(count, parts, index, 16);
        ASSERT_EQ(slice.begin, next);
        ASSERT_TRUE(slice.begin % 16 == 0 || slice.size() == 0);
        ASSERT_GE(slice.size(), 0);
        next += slice.size();
      }
      ASSERT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace lockstep
