#include "lockstep/base/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "tests/support/held_port.h"

namespace lockstep {
namespace {

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "");
}

bool mentions(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

struct Connection {
  Connection() : listener(tcp_listen("127.0.0.1", 0)), port(local_port(listener.get())) {
    client = tcp_connect({"127.0.0.1", port}, Deadline::after(10s));
    server = tcp_accept(listener.get(), Deadline::after(10s));
  }
  UniqueFd listener;
  int port;
  UniqueFd client;
  UniqueFd server;
};

TEST(Endpoint, ParsesItsForms) {
  const auto same = [](const std::string& text, const std::string& host, int port) {
    const Endpoint endpoint = parse_endpoint(text, 99);
    EXPECT_EQ(endpoint.host, host) << text;
    EXPECT_EQ(endpoint.port, port) << text;
  };
  same("host:12", "host", 12);
  same("host", "host", 99);
  same("host:", "host", 99);
  same("127.0.0.1:1", "127.0.0.1", 1);
  same("[::1]:12", "::1", 12);
  same("[::1]", "::1", 99);
  same("::1", "::1", 99);
  same("fe80::1:2", "fe80::1:2", 99);
}

TEST(Endpoint, RefusesNonsense) {
  for (const char* text : {"", ":12", "[]:12", "host:port", "host:70000", "host:-1", "[::1]x:12",
                           "https://host:12", "/folder"})
    EXPECT_THROW(parse_endpoint(text, 99), Error) << text;
}

TEST(Endpoint, TextRoundTrips) {
  for (const char* text : {"host:12", "[::1]:12"})
    EXPECT_EQ(to_string(parse_endpoint(text, 0)), text);
}

TEST(Socket, WholeBuffersArrive) {
  Connection c;
  const std::string sent(5'000'000, 'x');
  auto sender = std::async(std::launch::async, [&] {
    send_all(c.client.get(), sent.data(), sent.size(), Deadline::after(10s), "server");
  });
  std::string got(sent.size(), ' ');
  recv_all(c.server.get(), got.data(), got.size(), Deadline::after(10s), "client");
  sender.get();
  EXPECT_EQ(got, sent);
}

TEST(Socket, DescriptorsAreCloseOnExec) {
  Connection c;
  for (const int fd : {c.listener.get(), c.client.get(), c.server.get()})
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Socket, ReceiveTimesOutAndSaysHowFarItCame) {
  Connection c;
  send_all(c.server.get(), "ab", 2, Deadline::after(10s), "client");
  char buffer[4];
  const auto error =
      error_of([&] { recv_all(c.client.get(), buffer, 4, Deadline::after(50ms), "rank 3"); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "rank 3 sent 2 of 4")) << error.what();
}

TEST(Socket, SendTimesOutWhenNobodyReads) {
  Connection c;
  const std::string bytes(64 << 20, 'x');
  const auto error = error_of(
      [&] { send_all(c.client.get(), bytes.data(), bytes.size(), Deadline::after(50ms), "r 3"); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "r 3")) << error.what();
}

TEST(Socket, ClosedPeerIsLost) {
  Connection c;
  c.server.reset();
  char byte;
  const auto receive =
      error_of([&] { recv_all(c.client.get(), &byte, 1, Deadline::after(10s), "rank 3"); });
  EXPECT_EQ(receive.code(), ErrorCode::kPeerLost);
  EXPECT_TRUE(mentions(receive, "rank 3")) << receive.what();
  const std::string bytes(1 << 20, 'x');
  const auto send = error_of([&] {
    for (int i = 0; i < 8; ++i)
      send_all(c.client.get(), bytes.data(), bytes.size(), Deadline::after(10s), "rank 3");
  });
  EXPECT_EQ(send.code(), ErrorCode::kPeerLost);
}

TEST(Socket, TakenPortIsNamed) {
  const UniqueFd first = tcp_listen("127.0.0.1", 0);
  const int port = local_port(first.get());
  const auto error = error_of([&] { tcp_listen("127.0.0.1", port); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(mentions(error, std::to_string(port))) << error.what();
}

TEST(Socket, ConnectWaitsForAServerThatComesLater) {
  const testing::HeldPort port;
  auto client = std::async(std::launch::async, [&] {
    return tcp_connect({"127.0.0.1", port.number()}, Deadline::after(20s));
  });
  EXPECT_EQ(client.wait_for(50ms), std::future_status::timeout);
  const UniqueFd listener = tcp_listen("127.0.0.1", port.number());
  EXPECT_TRUE(client.get());
}

TEST(Socket, ConnectTimesOutNamingTheEndpoint) {
  const testing::HeldPort port;
  const Endpoint nobody{"127.0.0.1", port.number()};
  const auto error = error_of([&] { tcp_connect(nobody, Deadline::after(50ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, to_string(nobody))) << error.what();
}

TEST(Socket, AnAddressWithoutAWayIsToldFromOneWithoutAListener) {
  const auto unreachable = error_of([] {
    tcp_connect({"255.255.255.255", 1}, Deadline::after(50ms));
  });
  EXPECT_EQ(unreachable.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(unreachable, "from 255.255.255.255:1: Network is unreachable"))
      << unreachable.what();
  const testing::HeldPort port;
  const auto refused = error_of([&] {
    tcp_connect({"127.0.0.1", port.number()}, Deadline::after(50ms));
  });
  EXPECT_TRUE(mentions(refused, "nothing listens there")) << refused.what();
}

/// Binds a socket to a free port and connects it there. The kernel does this by chance to a client
/// that retries before there is a listener.
UniqueFd connect_to_itself() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  EXPECT_EQ(::bind(fd.get(), generic, sizeof address), 0);
  address.sin_port = htons(static_cast<uint16_t>(local_port(fd.get())));
  EXPECT_EQ(::connect(fd.get(), generic, sizeof address), 0);
  return fd;
}

TEST(Socket, AConnectionToItselfIsToldFromOneToAServer) {
  EXPECT_TRUE(connected_to_itself(connect_to_itself().get()));
  const Connection c;
  EXPECT_FALSE(connected_to_itself(c.client.get()));
  EXPECT_FALSE(connected_to_itself(c.server.get()));
}

TEST(Socket, AnAbortedConnectionToItselfLeavesThePortToAServer) {
  UniqueFd fd = connect_to_itself();
  const int port = local_port(fd.get());
  abort_connection(std::move(fd));
  EXPECT_NO_THROW(tcp_listen("127.0.0.1", port));
}

TEST(Socket, AllAddressesAreThoseOfIpv4Too) {
  const UniqueFd listener = tcp_listen(kAllAddresses, 0);
  EXPECT_TRUE(tcp_connect({"127.0.0.1", local_port(listener.get())}, Deadline::after(10s)));
  EXPECT_FALSE(is_loopback(listener.get()));
}

/// Imitates a kernel that was booted with ipv6.disable=1.
bool take_away_ipv6() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Socket, DoesWithoutIpv6WhereTheKernelHasNone) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!take_away_ipv6()) ::_exit(9);
    const UniqueFd listener = tcp_listen(kAllAddresses, 0);
    const int port = local_port(listener.get());
    if (!tcp_connect({"127.0.0.1", port}, Deadline::after(10s))) ::_exit(1);
    // An unavailable address is skipped like one without a listener.
    const auto error = error_of([&] { tcp_connect({"::1", port}, Deadline::after(10ms)); });
    ::_exit(error.code() == ErrorCode::kTimeout ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Socket, UnknownHostIsUnavailable) {
  const auto error = error_of([] {
    tcp_connect({"no-such-host.invalid", 1}, Deadline::after(100ms));
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(mentions(error, "no-such-host.invalid")) << error.what();
}

TEST(Socket, AcceptTimesOut) {
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  EXPECT_EQ(error_of([&] { tcp_accept(listener.get(), Deadline::after(20ms)); }).code(),
            ErrorCode::kTimeout);
}

TEST(Socket, IsAwaitedWithALookNowAndThen) {
  Connection c;
  EXPECT_TRUE(await_ready(c.client.get(), POLLOUT, Deadline::after(20s)));
  EXPECT_FALSE(await_ready(c.client.get(), POLLIN, Deadline::after(20ms)));
  int looks = 0;
  EXPECT_TRUE(await_ready(c.client.get(), POLLIN, Deadline::after(20s), [&] {
    if (++looks == 2) send_all(c.server.get(), "x", 1, Deadline::after(20s), "client");
  }));
  EXPECT_EQ(looks, 2);
}

TEST(Socket, LoopbackIsToldFromTheWorld) {
  EXPECT_TRUE(is_loopback(tcp_listen("127.0.0.1", 0).get()));
  EXPECT_TRUE(is_loopback(tcp_listen("127.5.6.7", 0).get()));
  EXPECT_FALSE(is_loopback(tcp_listen("0.0.0.0", 0).get()));
  EXPECT_FALSE(is_loopback(tcp_listen("", 0).get()));
}

TEST(Socket, PeersAreNamedByAddress) {
  Connection c;
  EXPECT_EQ(peer_name(c.client.get()), "127.0.0.1:" + std::to_string(c.port));
  EXPECT_EQ(local_address_towards("127.0.0.1"), "127.0.0.1");
}

// Debian's installer gives 127.0.1.1 to a host's own name; here it is written so that only a
// look-up shows it.
TEST(OwnAddress, IsAnyThatIsFoundToBeLoopback) {
  for (const char* written : {"0x7f000101", "0:0:0:0:0:0:0:1", "127.0.1.1", "localhost"})
    EXPECT_TRUE(is_own_address(written)) << written;
  for (const char* written : {"", "192.0.2.7", "0xc0000207"})
    EXPECT_FALSE(is_own_address(written)) << written;
}

}  // namespace
}  // namespace lockstep
