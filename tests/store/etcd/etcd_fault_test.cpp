// A real etcd that is killed, restarted, stopped or loses its data, and servers that are no etcd.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <optional>
#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::EtcdServer;
using testing::mentions;
using testing::run_threads;
using testing::shared_etcd;
using testing::soon;

EtcdOptions one_member(int port) {
  EtcdOptions options;
  options.members = {{"127.0.0.1", port}};
  return options;
}

/// Deadlines for calls that span a restart.
Deadline late() {
  return Deadline::after(60s);
}

/// Calls are in progress while etcd ends and begins again.
void wait_for_a_restart(void (EtcdServer::*end)()) {
  EtcdServer server;
  const auto options = server.new_root();
  const auto store = connect_etcd_store(options, soon());
  store->set("before", "v", soon());
  const uint64_t version = store->watch("", 0, soon()).version;
  auto seen = std::async(std::launch::async, [&] { return store->watch("k", version, late()); });
  EXPECT_EQ(seen.wait_for(100ms), std::future_status::timeout);
  (server.*end)();
  auto set = std::async(std::launch::async, [&] { store->set("k", "v", late()); });
  EXPECT_EQ(set.wait_for(100ms), std::future_status::timeout);
  server.start();
  set.get();
  EXPECT_EQ(seen.get().changes.at(0).value, "v");
  EXPECT_EQ(store->try_get("before", soon()), "v");
}

TEST(EtcdFaults, ARestartIsWaitedFor) {
  wait_for_a_restart(&EtcdServer::kill);
}

TEST(EtcdFaults, ARestartInOrderIsWaitedFor) {
  wait_for_a_restart(&EtcdServer::end);
}

TEST(EtcdFaults, OneThatBeganAnewIsNotWatchedForEver) {
  EtcdServer server;
  const auto options = server.new_root();
  const auto store = connect_etcd_store(options, soon());
  for (int i = 0; i < 5; ++i) store->set("k", std::to_string(i), soon());
  const uint64_t version = store->watch("", 0, soon()).version;
  auto seen = std::async(std::launch::async, [&] { return store->watch("k", version, late()); });
  EXPECT_EQ(seen.wait_for(100ms), std::future_status::timeout);
  server.kill();
  server.forget();
  server.start();
  const auto error = error_of([&] { seen.get(); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_TRUE(mentions(error, "lost its data")) << error.what();
}

TEST(EtcdFaults, AMissingKeyIsSetOnceThroughRestarts) {
  EtcdServer server;
  const auto options = server.new_root();
  constexpr int kThreads = 4;
  std::atomic<bool> enough = false;
  std::array<std::vector<std::optional<std::string>>, kThreads> seen;
  auto work = std::async(std::launch::async, [&] {
    run_threads(kThreads, [&](int t) {
      const auto store = connect_etcd_store(options, late());
      auto& values = seen.at(static_cast<size_t>(t));
      while (!enough) {
        const std::string key = std::to_string(values.size());
        store->set_if_missing(key, std::to_string(t), late());
        values.push_back(store->try_get(key, late()));
      }
    });
  });
  for (int restart = 0; restart < 3; ++restart) {
    EXPECT_EQ(work.wait_for(150ms), std::future_status::timeout);
    server.kill();
    server.start();
    connect_etcd_store(options, late());
  }
  enough = true;
  work.get();
  const auto store = connect_etcd_store(options, soon());
  for (const auto& values : seen) {
    EXPECT_FALSE(values.empty());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], store->try_get(std::to_string(i), soon())) << i;
  }
}

TEST(EtcdFaults, AStoppedServerIsATimeoutThatNamesIt) {
  EtcdServer server;
  const auto store = connect_etcd_store(server.new_root(), soon());
  server.stop();
  const auto begin = Deadline::Clock::now();
  // With a separate key: etcd may carry it out when it goes on, before or after later calls.
  const auto error = error_of([&] { store->set("given up", "v", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, to_string(server.endpoint()))) << error.what();
  EXPECT_LT(Deadline::Clock::now() - begin, 30s);
  auto patient = std::async(std::launch::async, [&] { store->set("k", "w", late()); });
  EXPECT_EQ(patient.wait_for(50ms), std::future_status::timeout);
  server.go_on();
  patient.get();
  EXPECT_EQ(store->try_get("k", soon()), "w");
}

TEST(EtcdFaults, ALeaseWaitsForAnotherNoLongerThanItsDeadline) {
  EtcdServer server;
  const auto store = connect_etcd_store(server.new_root(), soon());
  server.stop();
  auto patient =
      std::async(std::launch::async, [&] { return store->set_with_lease("k", "v", 1h, late()); });
  EXPECT_EQ(patient.wait_for(50ms), std::future_status::timeout);
  auto hasty = std::async(std::launch::async, [&] {
    return error_of([&] { store->set_with_lease("h", "v", 1h, Deadline::after(50ms)); });
  });
  EXPECT_EQ(hasty.wait_for(20s), std::future_status::ready);
  server.go_on();
  EXPECT_EQ(hasty.get().code(), ErrorCode::kTimeout);
  EXPECT_TRUE(patient.get());
}

TEST(EtcdFaults, AnotherMemberIsAskedWhenOneIsGone) {
  const testing::HeldPort nobody;
  auto options = shared_etcd().new_root();
  options.members.insert(options.members.begin(), {"127.0.0.1", nobody.number()});
  const auto store = connect_etcd_store(options, soon());
  store->set("k", "v", soon());
  EXPECT_EQ(store->try_get("k", soon()), "v");
}

TEST(EtcdFaults, NobodyThereIsATimeoutThatNamesAll) {
  const testing::HeldPort first;
  const testing::HeldPort second;
  auto options = one_member(first.number());
  options.members.push_back({"127.0.0.1", second.number()});
  const auto error = error_of([&] { connect_etcd_store(options, Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, std::to_string(first.number())) &&
              mentions(error, std::to_string(second.number())))
      << error.what();
}

/// The error of connect_etcd_store() with a server that answers each request with `answer`.
Error error_with_answer(const std::string& answer) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  std::atomic<bool> done = false;
  auto foreign = std::async(std::launch::async, [&] {
    while (!done) {
      try {
        const UniqueFd fd = tcp_accept(listener.get(), Deadline::after(20ms));
        std::string request(16, ' ');
        recv_all(fd.get(), request.data(), request.size(), soon(), "client");
        send_all(fd.get(), answer.data(), answer.size(), soon(), "client");
      } catch (const Error&) {
        // No client came, or it has read enough.
      }
    }
  });
  auto error = error_of(
      [&] { connect_etcd_store(one_member(local_port(listener.get())), Deadline::after(2s)); });
  done = true;
  foreign.get();
  return error;
}

std::string http(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST(EtcdFaults, WhatIsNotEtcdIsNamed) {
  for (const std::string& answer :
       {http(404, "Not Found\n"), http(200, "<html>hello</html>"), http(200, R"({"kvs":5})"),
        http(200, R"({"kvs":[{"key":"*"}]})"),
        std::string("220 mail.example.org ESMTP ready\r\n")}) {
    const auto error = error_with_answer(answer);
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
    EXPECT_TRUE(mentions(error, "127.0.0.1:")) << error.what();
  }
  for (const std::string& answer : {http(503, ""), std::string("HTTP/1.1 200 OK\r\nConte")})
    EXPECT_EQ(error_with_answer(answer).code(), ErrorCode::kTimeout);
}

TEST(EtcdFaults, AWatchThatBeginsLateFindsWhatIsThere) {
  const auto store = connect_etcd_store(shared_etcd().new_root(), soon());
  store->set("k", "1", soon());
  const uint64_t version = store->watch("", 0, soon()).version;
  store->erase("k", soon());
  std::vector<Store::Change> changes;
  // Repeated, because etcd is slow on some machines.
  for (const auto end = soon(); changes.empty() && !end.passed();)
    changes = store->watch("", version, Deadline::after(0s)).changes;
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].value, std::nullopt);
}

TEST(EtcdFaults, ASilentHolderLosesItsKeysAndLearnsIt) {
  const auto options = shared_etcd().new_root();
  const auto holder = connect_etcd_store(options, soon());
  const auto other = connect_etcd_store(options, soon());
  EXPECT_TRUE(holder->set_with_lease("k", "v", 100ms, soon()));
  testing::wait_until_erased(*other, "k");
  EXPECT_TRUE(other->set_with_lease("k", "mine", 1h, soon()));
  for (int call = 0; call < 2; ++call) {
    const auto error = error_of([&] { holder->set_with_lease("k", "v", 100ms, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_TRUE(mentions(error, "'k'") && mentions(error, "2 s")) << error.what();
  }
  EXPECT_EQ(error_of([&] { holder->set("x", "", soon()); }).code(), ErrorCode::kPeerLost);
}

TEST(EtcdFaults, RenewingKeepsAKeyBeyondItsTime) {
  const auto options = shared_etcd().new_root();
  bool kept = false;
  for (int attempt = 0; attempt < 5 && !kept; ++attempt) {  // a busy machine may be too late
    const auto holder = connect_etcd_store(options, soon());
    const std::string key = "k" + std::to_string(attempt);
    EXPECT_TRUE(holder->set_with_lease(key, "v", 2s, soon()));
    const auto version = holder->watch(key, 0, soon()).version;
    const Deadline end = Deadline::after(5s);
    try {
      while (!end.passed()) {
        EXPECT_TRUE(holder->watch(key, version, Deadline::after(300ms)).changes.empty());
        EXPECT_TRUE(holder->set_with_lease(key, "v", 2s, soon()));
      }
      kept = true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    }
  }
  EXPECT_TRUE(kept);
}

TEST(EtcdFaults, AnEmptyRootOrNoMemberIsRefused) {
  auto options = one_member(1);
  options.root = "";
  EXPECT_EQ(error_of([&] { connect_etcd_store(options, soon()); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { connect_etcd_store({}, soon()); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
