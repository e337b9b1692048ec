#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/store/open_store.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"
#include "tests/support/held_port.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::shared_etcd;
using testing::soon;

TEST(EtcdUrl, MembersAndRoot) {
  const testing::HeldPort nobody;
  const std::string members =
      fmt::format("127.0.0.1:{},{}", nobody.number(), to_string(shared_etcd().endpoint()));
  const auto store = open_store("etcd://" + members + "/some/root", "", soon());
  store->set("k", "v", soon());
  EXPECT_EQ(open_store("etcd://" + members + "/some/root/", "", soon())->get("k", soon()), "v");
  EXPECT_EQ(open_store("etcd://" + members, "", soon())->try_get("k", soon()), std::nullopt);
  EtcdOptions options;
  options.members = {shared_etcd().endpoint()};
  options.root = "some/";
  EXPECT_EQ(connect_etcd_store(options, soon())->try_get("k", soon()), std::nullopt);
}

TEST(EtcdUrl, HttpsIsNotHttp) {
  const std::string url = "etcd://" + to_string(shared_etcd().endpoint()) + "?protocol=https";
  const auto error = error_of([&] { open_store(url, "", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "https://") && mentions(error, "SSL")) << error.what();
}

}  // namespace
}  // namespace lockstep
