#include "lockstep/store/tcp/shortcut.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/socket.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"
#include "tests/support/namespaces.h"

namespace lockstep {
namespace {

using testing::soon;

TcpStoreServerOptions serving(const char* host) {
  TcpStoreServerOptions options;
  options.host = host;
  options.secret = "secret";
  return options;
}

TEST(Shortcut, LeadsToTheServerOfThatPlaceAndNoOther) {
  const TcpStoreServer server(serving("127.0.0.1"));
  EXPECT_TRUE(connect_shortcut({"127.0.0.1", server.port()}));
  EXPECT_FALSE(connect_shortcut({"127.0.0.2", server.port()}));
  EXPECT_FALSE(connect_shortcut({"::1", server.port()}));
  EXPECT_FALSE(connect_shortcut({"localhost", server.port()})) << "names are TCP's business";
  const TcpStoreServer other(serving("127.0.0.1"));
  EXPECT_TRUE(connect_shortcut({"127.0.0.1", other.port()}));
}

TEST(Shortcut, IsGoneWithItsServer) {
  auto server = std::make_unique<TcpStoreServer>(serving("127.0.0.1"));
  const Endpoint place{"127.0.0.1", server->port()};
  server.reset();
  EXPECT_FALSE(connect_shortcut(place));
}

TEST(Shortcut, AServerOfAllAddressesHasOneForEach) {
  const TcpStoreServer server(serving("0.0.0.0"));
  EXPECT_TRUE(connect_shortcut({"127.0.0.1", server.port()}));
  EXPECT_TRUE(connect_shortcut({"127.0.0.2", server.port()}));
  EXPECT_FALSE(connect_shortcut({"::1", server.port()})) << "it does not serve IPv6";
}

// 192.0.2.0/24 is reserved for documentation, so it is certainly not this host's.
TEST(Shortcut, IsForAddressesOfThisHostOnly) {
  const TcpStoreServer server(serving("0.0.0.0"));
  EXPECT_FALSE(connect_shortcut({"192.0.2.1", server.port()}));
}

TEST(Shortcut, OfAnotherUserIsNotTaken) {
  const TcpStoreServer server(serving("127.0.0.1"));
  EXPECT_FALSE(connect_shortcut({"127.0.0.1", server.port()}, ::geteuid() + 1));
}

// In that container the kernel has no pid for the peer, and another number for its user.
TEST(Shortcut, ReachesFromOneContainerOfTheUserIntoAnotherAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const TcpStoreServer server(serving("127.0.0.1"));
  const pid_t child = ::fork();
  if (child == 0) {
    testing::enter_user_namespace(CLONE_NEWPID);
    testing::enter_pid_namespace();
    ::_exit(connect_shortcut({"127.0.0.1", server.port()}) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Shortcut, OfAUserWithoutANumberIsNotTakenAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const TcpStoreServer server(serving("127.0.0.1"));
  const pid_t child = ::fork();
  if (child == 0) {
    ::unshare(CLONE_NEWUSER);
    ::_exit(connect_shortcut({"127.0.0.1", server.port()}) ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Shortcut, WhereTheNameIsTakenThereIsNoneAndTcpServes) {
  UniqueFd listener = tcp_listen("127.0.0.1", 0);
  const Endpoint by_name{"localhost", local_port(listener.get())};
  const UniqueFd first = listen_shortcut(listener.get());
  EXPECT_TRUE(first);
  EXPECT_FALSE(listen_shortcut(listener.get()));
  const TcpStoreServer server(std::move(listener), serving("127.0.0.1"));
  connect_tcp_store(by_name, "secret", soon())->set("key", "value", soon());
}

TEST(Shortcut, ClientsProveTheSecretThereToo) {
  const TcpStoreServer server(serving("127.0.0.1"));
  const auto error = testing::error_of([&] {
    connect_tcp_store({"127.0.0.1", server.port()}, "another", soon());
  });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
}

}  // namespace
}  // namespace lockstep
