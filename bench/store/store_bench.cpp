// Speed of the TCP store on this machine: latency of its calls, and time for many clients to
// connect and meet at a barrier. The server is a separate process. Clients of the first table are
// processes, those of the second are threads of one process.
//
// usage: bench_store [SECONDS a measurement=0.5] [ROUNDS of the second table=5]

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double quantile(std::vector<double>& sorted, double q) {
  return sorted.at(static_cast<size_t>(q * static_cast<double>(sorted.size() - 1)));
}

struct Pipe {
  Pipe() {
    int fds[2];
    if (::pipe(fds) != 0) throw io_error("pipe");
    out.reset(fds[0]);
    in.reset(fds[1]);
  }
  UniqueFd out;
  UniqueFd in;
};

void read_exactly(int fd, void* data, size_t size) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(fd, next, size);
    if (got <= 0) throw Error(ErrorCode::kPeerLost, "a process of the benchmark ended early");
    next += got;
    size -= static_cast<size_t>(got);
  }
}

/// A child that runs `body`; it ends with it, or with this process.
pid_t spawn(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_store: {}\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

/// A store's server in a separate process.
class Server {
 public:
  Server() {
    Pipe report;
    pid_ = spawn([&] {
      const TcpStoreServer server({"127.0.0.1", 0, secret_});
      const int port = server.port();
      write_all(report.in.get(), &port, sizeof port, "port");
      while (true) ::pause();
    });
    report.in.reset();
    read_exactly(report.out.get(), &port_, sizeof port_);
  }
  ~Server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::shared_ptr<Store> connect() const {
    return connect_tcp_store({"127.0.0.1", port_}, secret_, Deadline::after(60s));
  }

 private:
  std::string secret_ = make_job_secret();
  pid_t pid_ = 0;
  int port_ = 0;
};

using Operation = void (*)(Store& store, const std::string& key);

/// One client's latencies, in us, over `seconds`; written to `report`.
void run_client(const Server& server, int index, Operation operation, double seconds, int go,
                int report) {
  const auto store = server.connect();
  const std::string key = "key" + std::to_string(index);
  store->set(key, "0", Deadline::after(9s));
  char byte = 0;
  read_exactly(go, &byte, 1);
  std::vector<double> us;
  const auto start = Clock::now();
  while (ms_since(start) < seconds * 1e3) {
    const auto begin = Clock::now();
    operation(*store, key);
    us.push_back(ms_since(begin) * 1e3);
  }
  const size_t count = us.size();
  write_all(report, &count, sizeof count, "report");
  write_all(report, us.data(), count * sizeof(double), "report");
}

void measure_operation(const char* name, Operation operation, int clients, double seconds) {
  const Server server;
  Pipe go;
  std::vector<Pipe> reports(static_cast<size_t>(clients));
  std::vector<pid_t> pids;
  pids.reserve(reports.size());
  for (int i = 0; i < clients; ++i) {
    pids.push_back(spawn([&, i] {
      run_client(server, i, operation, seconds, go.out.get(),
                 reports[static_cast<size_t>(i)].in.get());
    }));
  }
  const std::string everyone(static_cast<size_t>(clients), 'g');
  write_all(go.in.get(), everyone.data(), everyone.size(), "go");
  std::vector<double> us;
  for (auto& report : reports) {
    report.in.reset();
    size_t count = 0;
    read_exactly(report.out.get(), &count, sizeof count);
    const size_t before = us.size();
    us.resize(before + count);
    read_exactly(report.out.get(), us.data() + before, count * sizeof(double));
  }
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  std::sort(us.begin(), us.end());
  fmt::print("{:<12} {:>8} {:>9.1f} {:>9.1f} {:>9.1f} {:>11.0f}\n", name, clients, us.front(),
             quantile(us, 0.5), quantile(us, 0.99), static_cast<double>(us.size()) / seconds);
}

/// A gate for the threads of this program. Threads of std::barrier spin before they sleep: with a
/// thousand on two cores it took longer than the measured operation.
class Gate {
 public:
  explicit Gate(int threads) {
    ::pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(threads));
  }
  ~Gate() { ::pthread_barrier_destroy(&barrier_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void pass() { ::pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_{};
};

/// Milliseconds until all are connected, and until all have left a barrier.
std::pair<double, double> meet(int clients) {
  const Server server;
  Gate gate(clients + 1);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(clients));
  const auto connecting = Clock::now();
  for (int rank = 0; rank < clients; ++rank) {
    threads.emplace_back([&, rank] {
      const auto store = server.connect();
      gate.pass();
      gate.pass();
      store_barrier(*store, "b", rank, clients, Deadline::after(60s));
      gate.pass();
    });
  }
  gate.pass();
  const double connected = ms_since(connecting);
  const auto meeting = Clock::now();
  gate.pass();
  gate.pass();
  const double met = ms_since(meeting);
  for (auto& thread : threads) thread.join();
  return {connected, met};
}

void measure_meeting(int clients, int rounds) {
  std::vector<double> connected;
  std::vector<double> met;
  for (int round = 0; round < rounds; ++round) {
    const auto [connect_ms, barrier_ms] = meet(clients);
    connected.push_back(connect_ms);
    met.push_back(barrier_ms);
  }
  std::sort(connected.begin(), connected.end());
  std::sort(met.begin(), met.end());
  fmt::print("{:>8} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f}\n", clients, connected.front(),
             quantile(connected, 0.5), met.front(), quantile(met, 0.5));
}

int run(int argc, char** argv) {
  const double seconds = argc > 1 ? std::stod(argv[1]) : 0.5;
  const int rounds = argc > 2 ? static_cast<int>(parse_int(argv[2], 1, 1000, "ROUNDS")) : 5;
  ::setvbuf(stdout, nullptr, _IOLBF, 0);  // children must not print the parent's buffer

  struct Row {
    const char* name;
    Operation operation;
  };
  const std::vector<Row> rows = {
      {"set", [](Store& s,
                 const std::string& key) { s.set(key, "16 bytes of text", Deadline::after(9s)); }},
      {"get", [](Store& s, const std::string& key) { s.get(key, Deadline::after(9s)); }},
      {"add", [](Store& s, const std::string& key) { s.add(key, 1, Deadline::after(9s)); }}};
  fmt::print("{:<12} {:>8} {:>9} {:>9} {:>9} {:>11}\n", "operation", "clients", "min us", "p50 us",
             "p99 us", "all ops/s");
  for (const auto& row : rows) {
    for (const int clients : {1, 8}) measure_operation(row.name, row.operation, clients, seconds);
  }

  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  fmt::print("\n{:>8} {:>12} {:>12} {:>12} {:>12}\n", "clients", "connect min", "connect p50",
             "barrier min", "barrier p50");
  for (const int clients : {64, 256, 1024}) measure_meeting(clients, rounds);
  fmt::print("(ms)\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_store", run, argc, argv);
}
