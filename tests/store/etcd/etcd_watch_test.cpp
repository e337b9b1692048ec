// Watches of a real etcd that compacts its history, and of one whose streams fail.

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/store/etcd/etcd_client.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::shared_etcd;
using testing::soon;

/// A client that opens a new stream for each watch, and another client of the same keys.
struct Watched {
  Watched() {
    EtcdOptions options = shared_etcd().new_root();
    other = connect_etcd_store(options, soon());
    options.stream_time = 0ms;
    watcher = connect_etcd_store(options, soon());
  }
  /// Keys outside of w/ change, and etcd drops all history before now.
  void compact() const {
    for (int i = 0; i < 3; ++i) other->set("aside", std::to_string(i), soon());
    shared_etcd().compact(other->watch("aside", 0, soon()).version);
  }
  /// "KEY=VALUE" of each change since the last call, "KEY" if it was erased.
  std::vector<std::string> changes(const std::string& prefix, Deadline deadline) {
    const auto seen = watcher->watch(prefix, version, deadline);
    version = seen.version;
    std::vector<std::string> texts;
    for (const auto& [key, value] : seen.changes) texts.push_back(value ? key + "=" + *value : key);
    return texts;
  }

  std::shared_ptr<KeyValueStore> other;
  std::shared_ptr<KeyValueStore> watcher;
  uint64_t version = 0;
};

using Texts = std::vector<std::string>;

TEST(EtcdWatch, ACompactionEndsNoWatchAndHidesNoChange) {
  Watched keys;
  for (const char* key : {"w/changed", "w/erased", "w/kept"}) keys.other->set(key, "1", soon());
  EXPECT_EQ(keys.changes("w/", soon()), (Texts{"w/changed=1", "w/erased=1", "w/kept=1"}));
  for (int quiet = 0; quiet < 2; ++quiet) {
    keys.compact();
    EXPECT_EQ(keys.changes("w/", Deadline::after(0ms)), Texts{});
  }
  keys.other->set("w/changed", "2", soon());
  keys.other->erase("w/erased", soon());
  keys.other->set("w/gone again", "1", soon());
  keys.other->erase("w/gone again", soon());
  keys.other->set("w/new", "1", soon());
  keys.compact();
  EXPECT_EQ(keys.changes("w/", soon()), (Texts{"w/changed=2", "w/erased", "w/new=1"}));
  keys.other->set("w/kept", "2", soon());
  EXPECT_EQ(keys.changes("w/", soon()), Texts{"w/kept=2"});
  keys.other->erase("w/new", soon());
  EXPECT_EQ(keys.changes("w/", soon()), Texts{"w/new"});
  keys.other->erase("w/changed", soon());
  keys.compact();
  EXPECT_EQ(keys.changes("w/", soon()), Texts{"w/changed"});
}

// As of an agent that does not lead any more.
TEST(EtcdWatch, ALongerPrefixGoesOnFromTheShorterOne) {
  Watched keys;
  for (const char* key : {"w/a/1", "w/a/2", "w/b"}) keys.other->set(key, "1", soon());
  EXPECT_EQ(keys.changes("w/", soon()).size(), 3U);
  keys.other->erase("w/a/1", soon());
  keys.other->erase("w/b", soon());
  keys.compact();
  EXPECT_EQ(keys.changes("w/a/", soon()), Texts{"w/a/1"});
  keys.other->erase("w/a/2", soon());
  keys.compact();
  EXPECT_EQ(keys.changes("w/a/", soon()), Texts{"w/a/2"});
}

TEST(EtcdWatch, AnEmptyPrefixIsWatchedAcrossACompaction) {
  Watched keys;
  EXPECT_EQ(keys.changes("w/", Deadline::after(0ms)), Texts{});
  keys.compact();
  EXPECT_EQ(keys.changes("w/", Deadline::after(0ms)), Texts{});
  keys.other->set("w/k", "1", soon());
  keys.compact();
  EXPECT_EQ(keys.changes("w/", soon()), Texts{"w/k=1"});
}

TEST(EtcdWatch, AVersionThatItHasNotDeliveredIsRefused) {
  Watched keys;
  keys.other->set("w/k", "1", soon());
  keys.version = keys.other->watch("w/", 0, soon()).version;
  const auto is_refused = [&](const std::string& prefix) {
    const auto error = error_of([&] { keys.changes(prefix, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_TRUE(mentions(error, "begin with 0")) << error.what();
  };
  keys.compact();
  for (int again = 0; again < 2; ++again) is_refused("w/");
  keys.version = 0;
  EXPECT_EQ(keys.changes("w/k", soon()), Texts{"w/k=1"});
  keys.compact();
  is_refused("w/");  // a shorter prefix may have more keys
  EXPECT_EQ(keys.changes("w/k", Deadline::after(0ms)), Texts{});
}

/// Sends `answers` in turn, each to one connection that has made a whole request.
class Stub {
 public:
  explicit Stub(Texts answers)
      : answers_(std::move(answers)), ended_(std::async(std::launch::async, [this] { serve(); })) {}
  Endpoint endpoint() const { return {"127.0.0.1", local_port(listener_.get())}; }
  void wait() { ended_.get(); }

 private:
  void serve() const {
    for (const auto& answer : answers_) {
      const UniqueFd fd = tcp_accept(listener_.get(), soon());
      char buffer[1 << 16];
      for (std::string request; !request.ends_with('}');)
        request.append(buffer, recv_some(fd.get(), buffer, sizeof buffer, soon(), "client"));
      const std::string all = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + answer;
      send_all(fd.get(), all.data(), all.size(), soon(), "client");
    }
  }

  const UniqueFd listener_ = tcp_listen("127.0.0.1", 0);
  const Texts answers_;
  std::future<void> ended_;
};

// As of an etcd that ends in order.
TEST(EtcdWatch, AStreamThatEndsWithAnErrorIsOpenedAgain) {
  const std::string created = R"({"result":{"header":{"revision":"4"},"created":true}})";
  const std::string change =
      R"({"result":{"header":{"revision":"5"},"events":[{"kv":{"key":"aw==","mod_revision":"5"}}]}})";
  const std::string failure = R"({"error":{"code":14,"message":"going away","details":[]}})";
  Stub etcd({created + "\n" + failure + "\n", failure + "\n", created + "\n" + change + "\n"});
  EtcdOptions options;
  options.members = {etcd.endpoint()};
  EtcdClient client(options);
  std::string seen;
  EXPECT_TRUE(client.watch({"k", ""}, 5, soon(), [&](const etcd::WatchAnswer& answer) {
    for (const auto& event : answer.events) seen += event.item.key;
    return seen.empty();
  }));
  EXPECT_EQ(seen, "k");
  etcd.wait();
}

}  // namespace
}  // namespace lockstep
