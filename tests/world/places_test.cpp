#include "lockstep/world/places.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/store/memory/memory_store.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TEST(Places, HostsAreNumberedByTheirLowestRank) {
  const auto places =
      assign_places({{"b", kUnknownNumber}, {"a", kUnknownNumber}, {"b", kUnknownNumber}});
  EXPECT_EQ(places[0], (RankPlace{0, 2, 0, 2}));
  EXPECT_EQ(places[1], (RankPlace{0, 1, 1, 2}));
  EXPECT_EQ(places[2], (RankPlace{1, 2, 0, 2}));
}

TEST(Places, LaunchersLocalRanksAreKeptWhereTheyAreAll) {
  const auto kept = assign_places({{"a", 1}, {"a", 0}});
  EXPECT_EQ(kept[0].local_rank, 1);
  EXPECT_EQ(kept[1].local_rank, 0);
  for (const int second : {1, 2, kUnknownNumber}) {  // twice the same, a gap, not given
    const auto counted = assign_places({{"a", 1}, {"a", second}});
    EXPECT_EQ(counted[0].local_rank, 0);
    EXPECT_EQ(counted[1].local_rank, 1);
  }
}

TEST(Places, AreFoundThroughTheStore) {
  const auto store = make_memory_store();
  std::vector<Identity> ids(5);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&, rank] {
      Identity& id = ids[static_cast<size_t>(rank)];
      id.rank = rank;
      id.size = 5;
      id.local_size = id.num_nodes = id.node_rank = id.local_rank = kUnknownNumber;
      const std::string host = rank < 3 ? "boot id/pid:[1]/user:[2]/uid:0" : "other";
      find_place(*store, host, &id, Deadline::after(30s));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(describe(ids[2]), "rank 2 of 5, local rank 2 of 3, host 0 of 2");
  EXPECT_EQ(describe(ids[4]), "rank 4 of 5, local rank 1 of 2, host 1 of 2");
}

TEST(Places, AMissingRankIsNamed) {
  for (const int rank : {0, 2}) {
    const auto store = make_memory_store();
    Identity id;
    id.rank = rank;
    id.size = 3;
    id.local_size = id.num_nodes = id.node_rank = id.local_rank = kUnknownNumber;
    const Error error = error_of([&] { find_place(*store, "a", &id, Deadline::after(0s)); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(std::string(error.what()),
              rank == 0 ? "joining the job, on rank 0: ranks 1, 2 of 3 did not come in time"
                        : "joining the job, on rank 2: ranks 0, 1 of 3 did not come in time");
  }
}

}  // namespace
}  // namespace lockstep
