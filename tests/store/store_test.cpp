#include "lockstep/store/store.h"

#include <gtest/gtest.h>

#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep {
namespace {

TEST(MemoryStore, SetThenGet) {
  const auto store = make_memory_store();
  store->set("k", "v", Deadline::after(5s));
  EXPECT_EQ(store->get("k", Deadline::after(5s)), "v");
  EXPECT_EQ(store->add("n", 2, Deadline::after(5s)), 2);
}

TEST(TcpStore, SetThenGet) {
  TcpStoreServer server({"127.0.0.1", 0, "s"});
  const auto store = connect_tcp_store({"127.0.0.1", server.port()}, "s", Deadline::after(5s));
  store->set("k", "v", Deadline::after(5s));
  EXPECT_EQ(store->get("k", Deadline::after(5s)), "v");
  EXPECT_EQ(store->add("n", 2, Deadline::after(5s)), 2);
  EXPECT_THROW(store->get("none", Deadline::after(50ms)), std::exception);
  EXPECT_EQ(store->add("n", 2, Deadline::after(5s)), 4);
}

}  // namespace
}  // namespace lockstep
