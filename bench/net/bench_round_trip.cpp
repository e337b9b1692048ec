// What an exchange of 4 bytes between two hosts costs at least: a message there and back over one
// plain TCP connection, both ends looking again and again without sleeping.
//
//   bench_round_trip PORT            serves one client
//   bench_round_trip HOST PORT       prints "min_us median_us"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/socket.h"

namespace {

using namespace lockstep;

constexpr int kTrips = 20000;
using Message = char[4];

void receive(int fd) {
  Message bytes;
  for (size_t got = 0; got < sizeof bytes;) {
    const auto part = ::recv(fd, bytes + got, sizeof bytes - got, MSG_DONTWAIT);
    if (part == 0) throw Error(ErrorCode::kPeerLost, "the other end has gone");
    if (part > 0) got += static_cast<size_t>(part);
  }
}

void send(int fd) {
  const Message bytes = {};
  send_all(fd, bytes, sizeof bytes, Deadline::after(std::chrono::seconds(10)), "the other end");
}

void serve(int port) {
  const auto limit = Deadline::after(std::chrono::seconds(30));
  const auto listener = tcp_listen("0.0.0.0", port);
  const auto client = tcp_accept(listener.get(), limit);
  for (int i = 0; i < kTrips; ++i) {
    receive(client.get());
    send(client.get());
  }
}

void measure(const std::string& host, int port) {
  using Clock = std::chrono::steady_clock;
  const auto server = tcp_connect({host, port}, Deadline::after(std::chrono::seconds(30)));
  std::vector<double> times;
  for (int i = 0; i < kTrips; ++i) {
    const auto start = Clock::now();
    send(server.get());
    receive(server.get());
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:.2f} {:.2f}\n", times.front(), times[times.size() / 2]);
}

int body(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    throw Error(ErrorCode::kInvalidArgument, "usage: bench_round_trip [HOST] PORT");
  }
  const auto port = static_cast<int>(parse_int(argv[argc - 1], 1, 65535, "PORT"));
  if (argc == 2) {
    serve(port);
  } else {
    measure(argv[1], port);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_round_trip", body, argc, argv);
}
