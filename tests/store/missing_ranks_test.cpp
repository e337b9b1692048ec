#include "lockstep/store/missing_ranks.h"

#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/store/memory/memory_store.h"

namespace lockstep {
namespace {

TEST(MissingRanks, AreThoseWithoutAKey) {
  const auto store = make_memory_store();
  const auto missing = [&](const auto& ranks) {
    return missing_ranks(*store, "a/", ranks, Deadline::after(10s));
  };
  EXPECT_EQ(missing(3), (std::vector<int>{0, 1, 2}));
  for (const char* key : {"a/1", "a/10", "a/2/more", "b/2"}) {
    store->set(key, "", Deadline::after(10s));
  }
  EXPECT_EQ(missing(3), (std::vector<int>{0, 2}));
  EXPECT_EQ(missing(std::vector<int>{10, 7, 1, 0}), (std::vector<int>{7, 0}));
  EXPECT_EQ(missing(std::vector<int>{1}), std::vector<int>());
}

}  // namespace
}  // namespace lockstep
