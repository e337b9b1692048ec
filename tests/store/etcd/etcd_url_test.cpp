#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/store/url/open_store.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::EtcdServer;
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
  EXPECT_TRUE(mentions(error, "https://") && mentions(error, "a server of http")) << error.what();
}

/// A server that resets each connection at the first bytes of its client.
class ResettingServer {
 public:
  ~ResettingServer() {
    over_ = true;
    thread_.join();
  }
  Endpoint endpoint() const { return {"127.0.0.1", local_port(listener_.get())}; }

 private:
  void serve() {
    while (!over_) {
      pollfd waits{listener_.get(), POLLIN, 0};
      if (::poll(&waits, 1, 20) != 1) continue;
      const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char byte = 0;
      ::recv(client.get(), &byte, 1, 0);
      const linger reset{1, 0};
      ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
  }

  UniqueFd listener_ = tcp_listen("127.0.0.1", 0);
  std::atomic<bool> over_ = false;
  std::thread thread_{[this] { serve(); }};
};

TEST(EtcdUrl, AServerThatResetsTheHandshakeMayBeOneOfHttp) {
  const ResettingServer server;
  const std::string url = "etcd://" + to_string(server.endpoint()) + "?protocol=https";
  const auto error = error_of([&] { open_store(url, "", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "reset") && mentions(error, "a server of http")) << error.what();
}

std::string url_of(const EtcdServer& server, const std::string& options) {
  return "etcd://" + to_string(server.endpoint()) + options;
}

TEST(EtcdUrl, FilesOfTlsThatAreWrongAreNamedAtOnce) {
  const EtcdServer server(EtcdServer::Wire::kTls);
  const std::string trusted = "?ca_cert=" + server.certificate();
  open_store(url_of(server, trusted), "", soon())->set("k", "v", soon());
  const auto refused = [&](const std::string& options, const std::string& says) {
    const auto error = error_of([&] { open_store(url_of(server, options), "", soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.what();
    EXPECT_TRUE(mentions(error, says) && mentions(error, to_string(server.endpoint())))
        << error.what();
    EXPECT_FALSE(mentions(error, "\n")) << error.what();
  };
  refused("?protocol=https", "certificate, with the system's authorities");
  refused("?ca_cert=/no/authorities.pem", "/no/authorities.pem");
  refused(trusted + "&ssl_cert=/no/certificate.pem", "ssl_cert /no/certificate.pem");
  refused(trusted + "&ssl_cert=" + server.certificate() + "&ssl_cert_key=/no/key.pem",
          "/no/key.pem");
}

TEST(EtcdUrl, AMemberThatIsTrustedIsEnough) {
  const EtcdServer other(EtcdServer::Wire::kTls);
  EtcdServer server(EtcdServer::Wire::kTls);
  auto options = server.new_root();
  options.members.insert(options.members.begin(), other.endpoint());
  EXPECT_NO_THROW(connect_etcd_store(options, soon()));
}

TEST(EtcdUrl, FilesOfTlsAreReplacedWhileTheyAreInUse) {
  EtcdServer server(EtcdServer::Wire::kTls);
  const TempFolder folder;
  const std::filesystem::path good = server.certificate();
  auto options = server.new_root();
  options.tls.certificate = folder / "cert.pem";
  options.tls.key = good.parent_path() / "key.pem";
  std::filesystem::copy_file(good, options.tls.certificate);
  const auto store = connect_etcd_store(options, soon());
  server.kill();
  server.start();
  connect_etcd_store(server.new_root(), soon());  // it serves again
  std::filesystem::remove(options.tls.certificate);
  const auto error = error_of([&] { store->set("k", "v", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
  EXPECT_TRUE(mentions(error, "certificate")) << error.what();
  std::filesystem::copy_file(good, options.tls.certificate);
  store->set("k", "v", soon());
}

TEST(EtcdUrl, AServerOfHttpsAskedByHttpHintsAtIt) {
  const EtcdServer server(EtcdServer::Wire::kTls);
  const auto error = error_of([&] { open_store(url_of(server, ""), "", Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
  EXPECT_TRUE(mentions(error, "protocol=https")) << error.what();
}

}  // namespace
}  // namespace lockstep
