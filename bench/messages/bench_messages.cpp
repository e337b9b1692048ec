// Cost of send and recv between two ranks of a host. It compares 16 MiB of ordinary memory with a
// memcpy of as many bytes in one process, and 4 bytes with a barrier. All four alternate, in one
// run.
//
// usage: bench_messages [ROUNDS=100] [LARGE_BYTES=16777216]

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/env.h"
#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/host_id.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

/// Repeats for operations that take less time than reading the clock.
constexpr int kSmallRepeats = 200;

struct Options {
  int rounds = 100;
  int64_t bytes = 16 << 20;
};

/// One rank's half of the measurement.
class Pair {
 public:
  Pair(ProcessGroup& group, const Options& options)
      : group_(group),
        options_(options),
        in_(static_cast<size_t>(options.bytes / 4), 1),
        out_(in_.size(), 2) {}

  void run() {
    for (int i = 0; i < 3; ++i) measure(false);
    for (int i = 0; i < options_.rounds; ++i) measure(true);
    if (group_.rank() == 0) print();
  }

 private:
  enum What { kCopy, kLarge, kBarrier, kSmall, kNumKinds };

  void measure(bool counts) {
    const auto large = static_cast<int64_t>(in_.size());
    const auto copy = [&] { std::memcpy(out_.data(), in_.data(), in_.size() * sizeof(float)); };
    const std::array<double, kNumKinds> took = {
        group_.rank() == 0 ? seconds_of(1, copy) : seconds_of(1, [] {}),
        seconds_of(1, [&] { ping_pong(large); }) / 2,
        seconds_of(kSmallRepeats, [&] { group_.barrier(); }),
        seconds_of(kSmallRepeats, [&] { ping_pong(1); }) / 2,
    };
    for (size_t kind = 0; counts && kind < kNumKinds; ++kind) {
      us_.at(kind).push_back(took.at(kind) * 1e6);
    }
  }

  double seconds_of(int repeats, const std::function<void()>& operate) {
    group_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) operate();
    return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
  }

  void ping_pong(int64_t count) {
    const int peer = 1 - group_.rank();
    if (group_.rank() == 0) group_.send(in_.data(), count, DType::kFloat32, peer).wait();
    group_.recv(out_.data(), count, DType::kFloat32, peer).wait();
    if (group_.rank() == 1) group_.send(in_.data(), count, DType::kFloat32, peer).wait();
  }

  double median_of(What kind) {
    auto& times = us_.at(kind);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  void print() {
    const auto row = [this](const std::string& name, What kind) {
      const double median = median_of(kind);
      fmt::print("{:<28} {:>10.2f} {:>10.2f} {:>10.2f}\n", name, us_.at(kind).front(), median,
                 us_.at(kind)[us_.at(kind).size() * 9 / 10]);
      return median;
    };
    fmt::print("2 ranks of a host, {} rounds, microseconds\n{:<28} {:>10} {:>10} {:>10}\n",
               options_.rounds, "", "min", "p50", "p90");
    const auto bytes = fmt::format("{} B", options_.bytes);
    const double copy = row("memcpy of " + bytes, kCopy);
    const double large = row("send and recv of " + bytes, kLarge);
    const double barrier = row("barrier", kBarrier);
    const double small = row("send and recv of 4 B", kSmall);
    fmt::print("{:.2f} times a memcpy, {:.2f} times a barrier\n", large / copy, small / barrier);
  }

  ProcessGroup& group_;
  const Options options_;
  std::vector<float> in_, out_;
  std::array<std::vector<double>, kNumKinds> us_;
};

[[noreturn]] void be_rank(int rank, int port, const std::string& secret, const Options& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    World world;
    world.rank = world.local_rank = rank;
    world.size = world.local_size = 2;
    world.host_id = this_host_id();
    world.secret = secret;
    world.store = connect_tcp_store({"127.0.0.1", port}, secret, Deadline::after(60s));
    auto group = ProcessGroup::create(world, {.timeout = 60s});
    Pair(group, options).run();
    group.barrier();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_messages: rank {}: {}\n", rank, error.what());
    std::fflush(nullptr);
    ::_exit(1);
  }
  std::fflush(nullptr);
  ::_exit(0);
}

int run(int argc, char** argv) {
  Options options;
  if (argc > 1) options.rounds = static_cast<int>(parse_int(argv[1], 1, 100'000, "ROUNDS"));
  if (argc > 2) options.bytes = parse_int(argv[2], 4, int64_t{1} << 32, "LARGE_BYTES");
  const std::string secret = make_job_secret();
  std::array<int, 2> port_of = {};
  if (::pipe(port_of.data()) != 0) throw io_error("pipe");
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 2; ++rank) {
    pids.push_back(::fork());
    if (pids.back() != 0) continue;
    int port = 0;  // the server has threads, so it starts after the forks
    if (::read(port_of[0], &port, sizeof port) != sizeof port) ::_exit(1);
    be_rank(rank, port, secret, options);
  }
  const TcpStoreServer server({"127.0.0.1", 0, secret});
  for (int rank = 0; rank < 2; ++rank) {
    const int port = server.port();
    if (::write(port_of[1], &port, sizeof port) != sizeof port) throw io_error("write");
  }
  bool good = true;
  for (const pid_t pid : pids) {
    int status = 0;
    good = ::waitpid(pid, &status, 0) == pid && status == 0 && good;
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_messages", run, argc, argv);
}
