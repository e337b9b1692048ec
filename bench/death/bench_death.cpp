// Time from kill -9 of one rank to the error of the last survivor, by the memory of the killed
// rank. The kernel takes tens of milliseconds to free a gigabyte, and notifies sockets and parents
// only afterwards.
//
// usage: bench_death [ROUNDS=5] [GiB ...=0 1 4]

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
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

constexpr int kRanks = 3;
constexpr int kVictim = 1;

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();  // one clock
}

/// In memory shared by all processes of a round.
struct Board {
  std::atomic<int> port = 0;
  std::atomic<int64_t> killed = 0;
  std::array<std::atomic<int64_t>, kRanks> told = {};
};

World world_of(int rank, const Board& board, const std::string& secret, bool one_host) {
  World world;
  world.rank = rank;
  world.size = kRanks;
  world.local_rank = one_host ? rank : 0;
  world.local_size = one_host ? kRanks : 1;
  world.node_rank = one_host ? 0 : rank;
  world.num_nodes = one_host ? 1 : kRanks;
  world.host_id = this_host_id() + (one_host ? "" : "/" + std::to_string(rank));
  world.secret = secret;
  world.store = connect_tcp_store({"127.0.0.1", board.port}, secret, Deadline::after(60s));
  return world;
}

void be_victim(ProcessGroup& group, Board& board, int64_t bytes) {
  if (bytes > 0) {
    void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw io_error("mmap");
    std::memset(memory, 1, static_cast<size_t>(bytes));
  }
  group.barrier();
  ::usleep(20'000);  // the others are waiting by now
  board.killed = now_ns();
  ::raise(SIGKILL);
}

void be_survivor(ProcessGroup& group, Board& board) {
  group.barrier();
  float value = 1;
  try {
    group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum).wait();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost) throw;
    board.told.at(static_cast<size_t>(group.rank())) = now_ns();
  }
}

[[noreturn]] void be_rank(int rank, Board& board, const std::string& secret, bool one_host,
                          int64_t bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    while (board.port == 0) ::usleep(1000);
    auto group = ProcessGroup::create(world_of(rank, board, secret, one_host), {.timeout = 60s});
    rank == kVictim ? be_victim(group, board, bytes) : be_survivor(group, board);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_death: rank {}: {}\n", rank, error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

/// Milliseconds from the kill to the last survivor's error.
double round_ms(bool one_host, int64_t bytes) {
  void* page =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw io_error("mmap");
  Board& board = *new (page) Board;
  const std::string secret = make_job_secret();
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kRanks; ++rank) {
    pids.push_back(::fork());
    if (pids.back() == 0) be_rank(rank, board, secret, one_host, bytes);
  }
  const TcpStoreServer server({"127.0.0.1", 0, secret});
  board.port = server.port();
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  int64_t last = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const int64_t told = board.told.at(static_cast<size_t>(rank));
    if (rank != kVictim && told == 0) {
      throw Error(ErrorCode::kInternal, fmt::format("rank {} got no error after the death", rank));
    }
    last = std::max(last, told);
  }
  const double ms = static_cast<double>(last - board.killed) / 1e6;
  ::munmap(page, sizeof(Board));
  return ms;
}

int run(int argc, char** argv) {
  const auto rounds = argc > 1 ? parse_int(argv[1], 1, 1000, "ROUNDS") : 5;
  std::vector<int64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(parse_int(argv[i], 0, 1024, "GiB"));
  if (sizes.empty()) sizes = {0, 1, 4};
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  fmt::print(
      "3 ranks, one killed while the others wait in all_reduce; ms until the error of the last\n");
  fmt::print("{:<24} {:>8} {:>8} {:>8} {:>8}\n", "", "GiB held", "min", "p50", "max");
  for (const bool one_host : {true, false}) {
    for (const int64_t gib : sizes) {
      std::vector<double> ms;
      for (int64_t round = 0; round < rounds; ++round) {
        ms.push_back(round_ms(one_host, gib << 30));
      }
      std::sort(ms.begin(), ms.end());
      fmt::print("{:<24} {:>8} {:>8.2f} {:>8.2f} {:>8.2f}\n",
                 one_host ? "one host (shm)" : "a host each (tcp)", gib, ms.front(),
                 ms[ms.size() / 2], ms.back());
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_death", run, argc, argv);
}
