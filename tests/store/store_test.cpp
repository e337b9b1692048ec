#include "lockstep/store/store.h"

#include <gtest/gtest.h>

#include "lockstep/store/memory/memory_store.h"

namespace lockstep {
namespace {

TEST(MemoryStore, SetThenGet) {
  const auto store = make_memory_store();
  store->set("k", "v", Deadline::after(5s));
  EXPECT_EQ(store->get("k", Deadline::after(5s)), "v");
  EXPECT_EQ(store->add("n", 2, Deadline::after(5s)), 2);
}

}  // namespace
}  // namespace lockstep
