#include "lockstep/store/url/open_store.h"

#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::soon;

TEST(OpenStore, ATcpStoreByItsSecret) {
  TcpStoreServerOptions options;
  options.secret = "secret";
  const TcpStoreServer server(options);
  const std::string url = "tcp://127.0.0.1:" + std::to_string(server.port());
  open_store(url, "secret", soon())->set("k", "v", soon());
  EXPECT_EQ(open_store(url + "/", "secret", soon())->get("k", soon()), "v");
  EXPECT_EQ(error_of([&] { open_store(url, "other", soon()); }).code(), ErrorCode::kMismatch);
}

TEST(OpenStore, AFolderByItsPath) {
  const TempFolder folder;
  const std::string url = "file://" + (folder / "store").string();
  const auto store = open_store(url, "", soon());
  store->set("k", "v", soon());
  EXPECT_EQ(open_store(url, "", soon())->get("k", soon()), "v");
}

TEST(OpenStore, MemoryIsNobodyElses) {
  const auto store = open_store("memory://", "", soon());
  store->set("k", "v", soon());
  EXPECT_EQ(open_store("memory://", "", soon())->try_get("k", soon()), std::nullopt);
}

TEST(OpenStore, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "not a URL"},
      {"127.0.0.1:80", "not a URL"},
      {"etc://h:1", "did you mean 'etcd'"},
      {"http://h:1", "no kind 'http'"},
      {"tcp://h", "no port"},
      {"tcp://h:1/path", "nothing may follow"},
      {"tcp://h:1?x=1", "nothing may follow"},
      {"tcp://", "no host"},
      {"etcd://", "no host"},
      {"file://relative/path", "file:///PATH"},
      {"file:///", "file:///PATH"},
      {"etcd://h:99999", "port"},
      {"etcd://h,", "no host"},
      {"etcd://h?ca_certs=f", "did you mean 'ca_cert'"},
      {"etcd://h?ca_cert", "wants a file"},
      {"etcd://h?protocol=ftp", "http and https"}};
  for (const auto& [url, what] : wrong) {
    const auto error = error_of([&, u = url] { open_store(u, "", Deadline::after(10ms)); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << url;
    EXPECT_TRUE(mentions(error, what)) << error.what();
  }
}

}  // namespace
}  // namespace lockstep
