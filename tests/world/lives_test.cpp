#include "lockstep/world/lives.h"

#include <gtest/gtest.h>

#include "lockstep/store/memory/memory_store.h"

namespace lockstep {
namespace {

Deadline lives_soon() {
  return Deadline::after(std::chrono::seconds(60));
}

TEST(Lives, ADeathIsNamedHoweverMuchHasBeenErased) {
  const auto store = make_memory_store();
  for (int rank = 0; rank < 3; ++rank) show_life(*store, rank, lives_soon());
  EXPECT_TRUE(dead_ranks(*store, {0, 1, 2, 3}, lives_soon()).empty()) << "3 has not come yet";
  // As many as the keys of a long job with many sub-groups: more than a store remembers.
  for (int i = 0; i < 70'000; ++i) {
    store->set("group", "", lives_soon());
    store->erase("group", lives_soon());
  }
  EXPECT_TRUE(dead_ranks(*store, {0, 1, 2}, lives_soon()).empty());
  store->erase("life/1", lives_soon());
  EXPECT_EQ(dead_ranks(*store, {0, 1, 2}, lives_soon()), std::vector<int>{1});
}

TEST(Lives, WhoGaveUpIsNamedOnlyWhereNobodyElseDiedAndTellsWhy) {
  const auto store = make_memory_store();
  for (int rank = 0; rank < 3; ++rank) show_life(*store, rank, lives_soon());
  give_up_life(*store, 1, "rank 0 died", lives_soon());
  store->erase("life/0", lives_soon());
  store->erase("life/1", lives_soon());
  EXPECT_EQ(dead_ranks(*store, {0, 1, 2}, lives_soon()), std::vector<int>{0});
  EXPECT_EQ(dead_ranks(*store, {1, 2}, lives_soon()), std::vector<int>{1});
  EXPECT_EQ(why_gave_up(*store, 1, lives_soon()), "rank 0 died");
  EXPECT_EQ(why_gave_up(*store, 2, lives_soon()), std::nullopt);
}

TEST(Lives, WhoLeftInGoodOrderIsNotNamedBesideADeath) {
  const auto store = make_memory_store();
  for (int rank = 0; rank < 3; ++rank) {
    show_life(*store, rank, lives_soon());
    EXPECT_FALSE(has_left(*store, rank, lives_soon()));
  }
  give_up_life(*store, 1, "rank 2 died", lives_soon());
  leave_life(*store, 0, lives_soon());
  EXPECT_TRUE(dead_ranks(*store, {0, 1, 2}, lives_soon()).empty()) << "all are there still";
  for (const char* key : {"life/0", "life/1"}) store->erase(key, lives_soon());
  EXPECT_EQ(dead_ranks(*store, {0, 1, 2}, lives_soon()), std::vector<int>{1});
  store->erase("life/2", lives_soon());
  EXPECT_EQ(dead_ranks(*store, {0, 1, 2}, lives_soon()), std::vector<int>{2});
  EXPECT_EQ(dead_ranks(*store, {0, 2}, lives_soon()), std::vector<int>{2});
  EXPECT_EQ(dead_ranks(*store, {0}, lives_soon()), std::vector<int>{0});
  EXPECT_TRUE(has_left(*store, 0, lives_soon()));
  return_to_life(*store, 0, lives_soon());
  EXPECT_FALSE(has_left(*store, 0, lives_soon()));
}

}  // namespace
}  // namespace lockstep
