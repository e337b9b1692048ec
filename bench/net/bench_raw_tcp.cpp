// Least cost of an exchange between two hosts, over one plain TCP connection whose ends poll
// without sleeping. It is a message of 4 bytes there and back, or the bytes of an all_reduce of two
// ranks. The latter go both ways at once, out of and into one buffer of that size, without any sum.
//
//   bench_raw_tcp PORT [BYTES]             serves one client
//   bench_raw_tcp HOST PORT [BYTES]        prints "min_us median_us"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMessage = 4;
constexpr int64_t kPiece = int64_t{256} << 10;
constexpr auto kLimit = std::chrono::seconds(30);

/// Sends and receives a total number of bytes, in either direction.
class Pipe {
 public:
  Pipe(int fd, int64_t bytes) : fd_(fd), buffer_(static_cast<size_t>(bytes)) {}

  void exchange(int64_t out, int64_t in) {
    const auto limit = Deadline::after(kLimit);
    for (int64_t sent = 0, got = 0; sent < out || got < in;) {
      if (sent < out) sent += moved(::send(fd_, at(sent), part(out - sent), kFlags));
      if (got < in) got += moved(::recv(fd_, at(got), part(in - got), MSG_DONTWAIT));
      if (limit.passed()) throw Error(ErrorCode::kTimeout, "the other end is silent");
    }
  }

 private:
  static constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  static size_t part(int64_t left) { return static_cast<size_t>(std::min(left, kPiece)); }
  static int64_t moved(ssize_t bytes) {
    if (bytes > 0) return bytes;
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    throw Error(ErrorCode::kPeerLost, "the other end has gone");
  }

  char* at(int64_t offset) { return buffer_.data() + offset; }

  int fd_;
  std::vector<char> buffer_;
};

int rounds_of(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / bytes, 10, 20000));
}

void round(Pipe& pipe, int64_t bytes, bool begins) {
  if (bytes != kMessage) return pipe.exchange(bytes, bytes);
  pipe.exchange(begins ? bytes : 0, begins ? 0 : bytes);
  pipe.exchange(begins ? 0 : bytes, begins ? bytes : 0);
}

void serve(int port, int64_t bytes) {
  const auto listener = tcp_listen("0.0.0.0", port);
  const auto client = tcp_accept(listener.get(), Deadline::after(kLimit));
  Pipe pipe(client.get(), bytes);
  for (int i = 0; i < rounds_of(bytes); ++i) round(pipe, bytes, false);
}

void measure(const std::string& host, int port, int64_t bytes) {
  const auto server = tcp_connect({host, port}, Deadline::after(kLimit));
  Pipe pipe(server.get(), bytes);
  std::vector<double> times;
  for (int i = 0; i < rounds_of(bytes); ++i) {
    const auto start = Clock::now();
    round(pipe, bytes, true);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:.2f} {:.2f}\n", times.front(), times[times.size() / 2]);
}

/// A host's name contains a letter, dot or colon; a port is a number alone.
bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

int body(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool client = !words.empty() && !is_number(words.front());
  const size_t first = client ? 1 : 0;
  if (words.size() != first + 1 && words.size() != first + 2) {
    throw Error(ErrorCode::kInvalidArgument, "usage: bench_raw_tcp [HOST] PORT [BYTES]");
  }
  const auto port = static_cast<int>(parse_int(words[first], 1, 65535, "PORT"));
  const int64_t bytes = words.size() > first + 1
                            ? parse_int(words[first + 1], kMessage, int64_t{1} << 30, "BYTES")
                            : kMessage;
  if (client) {
    measure(words.front(), port, bytes);
  } else {
    serve(port, bytes);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_raw_tcp", body, argc, argv);
}
