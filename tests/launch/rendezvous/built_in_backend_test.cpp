// Choice of the server by the built-in backend.

#include "lockstep/launch/rendezvous/built_in_backend.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "lockstep/launch/rendezvous/keys.h"
#include "tests/support/error_of.h"
#include "tests/support/held_port.h"

namespace {
std::atomic<bool> no_name_server = false;
}  // namespace

/// In place of libc's: without a name server "localhost" is a name that cannot be looked up.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  static const auto kLibc =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (no_name_server && name != nullptr && std::string_view(name) == "localhost") return EAI_AGAIN;
  return kLibc(name, service, hints, list);
}

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

struct NoNameServer {
  NoNameServer() { no_name_server = true; }
  ~NoNameServer() { no_name_server = false; }
  NoNameServer(const NoNameServer&) = delete;
  NoNameServer& operator=(const NoNameServer&) = delete;
};

/// For a job of two nodes that meet at this port of the host.
RunOptions two_nodes_at(int port) {
  RunOptions options;
  options.num_nodes = 2;
  options.rdzv_backend = "c10d";
  options.master_addr = "127.0.0.1";
  options.master_port = port;
  return options;
}

TEST(RendezvousKeys, AnAgentWithoutANameIsOfAnyJob) {
  EXPECT_TRUE(keys::is_same_job("one", "one"));
  EXPECT_TRUE(keys::is_same_job("", "one"));
  EXPECT_TRUE(keys::is_same_job("one", ""));
  EXPECT_FALSE(keys::is_same_job("one", "other"));
}

TEST(BuiltInBackend, WhoServedAndJoinedOthersCanServeAgain) {
  const HeldPort port;
  const RunOptions options = two_nodes_at(port.number());
  const std::atomic<bool> stop{false};

  BuiltInBackend own(options, "");
  const Endpoint endpoint = {"127.0.0.1", port.number()};
  const RendezvousBackend::Candidates all = {{endpoint, {"127.0.0.1", own.own_port()}}, 1};
  for (int round = 0; round < 2; ++round) {
    {
      BuiltInBackend other(options, "");
      const auto theirs = other.open(Deadline::after(30s));
      ASSERT_TRUE(other.may_lead());
      const auto store = own.reopen({{endpoint}}, stop, Deadline::after(30s));
      EXPECT_FALSE(own.may_lead());
    }
    const auto store = own.reopen(all, stop, Deadline::after(30s));
    ASSERT_TRUE(store);
    EXPECT_TRUE(own.may_lead()) << "round " << round;
  }
}

TEST(BuiltInBackend, WhoServesGoesOnWhereTheOtherEndpointIsDead) {
  const HeldPort port;
  const HeldPort nobody;
  const RunOptions options = two_nodes_at(port.number());
  const std::atomic<bool> stop{false};
  BuiltInBackend own(options, "");
  const Endpoint own_endpoint = {"127.0.0.1", own.own_port()};
  const RendezvousBackend::Candidates all = {{{"127.0.0.1", port.number()}, own_endpoint}, 1};
  own.reopen(all, stop, Deadline::after(30s))->set("key", "value", Deadline::after(30s));
  const Endpoint dead = {"127.0.0.1", nobody.number()};
  EXPECT_THROW(own.reopen({{dead}}, stop, Deadline::after(50ms)), Error);
  const auto again = own.reopen({{own_endpoint}, 0}, stop, Deadline::after(30s));
  EXPECT_EQ(again->try_get("key", Deadline::after(30s)), "value");
  EXPECT_TRUE(own.may_lead());
}

TEST(BuiltInBackend, TheProcessThatHasTheEndpointsPortIsNamed) {
  const UniqueFd mute = tcp_listen("127.0.0.1", 0);
  const int port = local_port(mute.get());
  BuiltInBackend own(two_nodes_at(port), "");
  const Error error = error_of([&] { own.open(Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  const std::string holder =
      fmt::format("port {} is already in use, by process {} (", port, ::getpid());
  EXPECT_NE(std::string(error.what()).find(holder), std::string::npos) << error.what();
}

TEST(BuiltInBackend, AgentsMeetAtAnotherAddressOfLoopback) {
  const HeldPort port;
  RunOptions options = two_nodes_at(port.number());
  options.master_addr = "127.0.1.1";
  BuiltInBackend first(options, "");
  const auto theirs = first.open(Deadline::after(30s));
  theirs->set("key", "value", Deadline::after(30s));
  BuiltInBackend second(options, "");
  EXPECT_EQ(second.open(Deadline::after(30s))->try_get("key", Deadline::after(30s)), "value");
  EXPECT_FALSE(second.may_lead());
  EXPECT_EQ(second.own_address(), "127.0.1.1");
}

// As Debian's installer gives 127.0.1.1 to a host's own name, which means another address
// elsewhere.
TEST(BuiltInBackend, ServesAndIsReachedByANameThatIsLoopbackHereAlone) {
  const HeldPort port;
  RunOptions options = two_nodes_at(port.number());
  options.master_addr = "0x7f000101";
  BuiltInBackend own(options, "secret");
  const auto store = own.open(Deadline::after(30s));
  EXPECT_TRUE(own.may_lead());
  EXPECT_EQ(own.listen_host(), kAllAddresses);
  EXPECT_EQ(own.own_address(), "0x7f000101");
  options.is_host = false;
  EXPECT_EQ(BuiltInBackend(options, "secret").own_address(), "0x7f000101");
}

// A cut link often cuts off the name servers as well, and each of them costs a look-up seconds.
TEST(BuiltInBackend, AfterALossTheServerIsFoundWithoutANameServer) {
  const HeldPort port;
  RunOptions options = two_nodes_at(port.number());
  options.master_addr = "localhost";
  const std::atomic<bool> stop{false};
  BuiltInBackend own(options, "");
  {
    BuiltInBackend other(options, "");
    const auto theirs = other.open(Deadline::after(30s));
    const auto ours = own.open(Deadline::after(30s));
    own.remember_addresses();
    const NoNameServer none;
    own.remember_addresses();  // as after each return to the same server
    EXPECT_FALSE(own.nobody_serves());
    EXPECT_TRUE(own.rejoin(stop, Deadline::after(30s)));
  }
  const NoNameServer none;
  EXPECT_TRUE(own.nobody_serves());
  EXPECT_FALSE(own.rejoin(stop, Deadline::after(30s)));
}

TEST(RendezvousBackend, AHostThatIsUnknownIsNamedBeforeASecretIsAskedFor) {
  const auto said = [](const char* backend, int node_rank) {
    RunOptions options = two_nodes_at(29500);
    options.rdzv_backend = backend;
    options.node_rank = node_rank;
    options.rdzv_endpoint = options.master_addr = "no-such-host.invalid";
    return std::string(error_of([&] { make_rendezvous_backend(options, ""); }).what());
  };
  for (const char* backend : {"static", "c10d", "etcd"}) {
    const std::string option =
        backend == std::string("static") ? "--master_addr" : "--rdzv_endpoint";
    EXPECT_EQ(said(backend, 1).find(option + ": host 'no-such-host.invalid' is unknown here"), 0U)
        << said(backend, 1);
    EXPECT_NE(said(backend, 1).find("LOCKSTEP_SECRET"), std::string::npos) << said(backend, 1);
  }
  EXPECT_EQ(said("static", 0).find("unknown here"), std::string::npos) << "node 0 is that host";
}

TEST(StoreBackend, AMemberThatIsNoEndpointIsNamed) {
  RunOptions options;
  options.rdzv_backend = "etcd";
  for (const auto& [members, says] : {std::pair("127.0.0.1,h:99999", "port of endpoint 'h:99999'"),
                                      std::pair("127.0.0.1,", "endpoint '': no host")}) {
    options.rdzv_endpoint = members;
    const auto error = error_of([&] { make_rendezvous_backend(options, ""); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << members;
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep::testing
