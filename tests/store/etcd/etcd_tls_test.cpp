// An etcd that is reached by https, or should be.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::EtcdServer;
using testing::mentions;
using testing::shared_etcd;
using testing::soon;

/// Of the member at `endpoint`, by https with these files.
EtcdOptions https(const Endpoint& endpoint, TlsFiles files = {}) {
  EtcdOptions options;
  options.members = {endpoint};
  options.use_tls = true;
  options.tls = std::move(files);
  return options;
}

TEST(EtcdTls, HttpsIsNotHttp) {
  const auto options = https(shared_etcd().endpoint());
  const auto error = error_of([&] { connect_etcd_store(options, Deadline::after(50ms)); });
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

TEST(EtcdTls, AServerThatResetsTheHandshakeMayBeOneOfHttp) {
  const ResettingServer server;
  const auto options = https(server.endpoint());
  const auto error = error_of([&] { connect_etcd_store(options, Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "reset") && mentions(error, "a server of http")) << error.what();
}

TEST(EtcdTls, FilesOfTlsThatAreWrongAreNamedAtOnce) {
  const EtcdServer server(EtcdServer::Wire::kTls);
  const std::string own = server.certificate();
  connect_etcd_store(https(server.endpoint(), {own, "", ""}), soon())->set("k", "v", soon());
  const auto refused = [&](const TlsFiles& files, const std::string& says) {
    const auto options = https(server.endpoint(), files);
    const auto error = error_of([&] { connect_etcd_store(options, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.what();
    EXPECT_TRUE(mentions(error, says) && mentions(error, to_string(server.endpoint())))
        << error.what();
    EXPECT_FALSE(mentions(error, "\n")) << error.what();
  };
  refused({}, "certificate, with the system's authorities");
  refused({"/no/authorities.pem", "", ""}, "/no/authorities.pem");
  refused({own, "/no/certificate.pem", ""}, "ssl_cert /no/certificate.pem");
  refused({own, own, "/no/key.pem"}, "/no/key.pem");
}

TEST(EtcdTls, AMemberThatIsTrustedIsEnough) {
  const EtcdServer other(EtcdServer::Wire::kTls);
  EtcdServer server(EtcdServer::Wire::kTls);
  auto options = server.new_root();
  options.members.insert(options.members.begin(), other.endpoint());
  EXPECT_NO_THROW(connect_etcd_store(options, soon()));
}

TEST(EtcdTls, FilesOfTlsAreReplacedWhileTheyAreInUse) {
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

TEST(EtcdTls, AServerOfHttpsAskedByHttpHintsAtIt) {
  const EtcdServer server(EtcdServer::Wire::kTls);
  EtcdOptions options;
  options.members = {server.endpoint()};
  const auto error = error_of([&] { connect_etcd_store(options, Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
  EXPECT_TRUE(mentions(error, "protocol=https")) << error.what();
}

}  // namespace
}  // namespace lockstep
