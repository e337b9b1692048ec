// torch's TCPStore, measured like Lockstep's in bench_store: the server is a separate process.
//
//   store_bench ops CLIENTS [SECONDS] [ROUNDS]    calls a second of CLIENTS processes together
//   store_bench barrier CLIENTS [ROUNDS]          CLIENTS threads connect, then meet

#include <c10/util/Logging.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kMostClients = 4096;

/// In memory shared by all processes.
struct Shared {
  std::atomic<int> port;
  std::atomic<int> ready;
  std::atomic<bool> go;
  std::atomic<long> calls[kMostClients];
};
Shared* shared = nullptr;

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) ::usleep(50);
}

c10d::TCPStoreOptions options_of(bool server) {
  c10d::TCPStoreOptions options;
  options.port = server ? 0 : static_cast<uint16_t>(shared->port.load());
  options.isServer = server;
  options.waitWorkers = false;
  return options;
}
std::shared_ptr<c10d::TCPStore> connect() {
  return std::make_shared<c10d::TCPStore>("127.0.0.1", options_of(false));
}

class Server {
 public:
  Server() {
    shared->port = 0;
    pid_ = ::fork();
    if (pid_ == 0) serve();
    wait_until([] { return shared->port != 0; });
  }
  ~Server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  [[noreturn]] static void serve() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    c10d::TCPStore store("127.0.0.1", options_of(true));
    shared->port = store.getPort();
    while (true) ::pause();
  }
  pid_t pid_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void call(c10d::TCPStore& store, const std::string& operation, const std::string& key) {
  static const std::vector<uint8_t> kValue(16, 'x');
  if (operation == "set") store.set(key, kValue);
  if (operation == "get") store.get(key);
  if (operation == "add" || operation == "add_same") store.add(key, 1);
}

/// One client process: makes calls until the time is over.
[[noreturn]] void run_client(int index, const std::string& operation, double seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto store = connect();
  const std::string key = operation == "add_same" ? "same" : "key" + std::to_string(index);
  if (operation == "get") call(*store, "set", key);
  ++shared->ready;
  wait_until([] { return shared->go.load(); });
  const double end = now() + seconds;
  long calls = 0;
  for (; now() < end; ++calls) call(*store, operation, key);
  shared->calls[index] = calls;
  ::_exit(0);
}

double calls_a_second(int clients, const std::string& operation, double seconds) {
  const Server server;
  shared->ready = 0;
  shared->go = false;
  std::vector<pid_t> pids;
  for (int i = 0; i < clients; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) run_client(i, operation, seconds);
    pids.push_back(pid);
  }
  wait_until([&] { return shared->ready == clients; });
  shared->go = true;
  double total = 0;
  for (int i = 0; i < clients; ++i) {
    ::waitpid(pids[static_cast<size_t>(i)], nullptr, 0);
    total += static_cast<double>(shared->calls[i]);
  }
  return total / seconds;
}

void time_operations(int clients, double seconds, int rounds) {
  for (const std::string operation : {"set", "get", "add", "add_same"}) {
    std::vector<double> rates;
    for (int i = 0; i < rounds; ++i) rates.push_back(calls_a_second(clients, operation, seconds));
    std::printf("store_ops,%s,clients=%d,median %.0f calls/s,%.1f us a call and client\n",
                operation.c_str(), clients, median(rates), clients * 1e6 / median(rates));
    std::fflush(stdout);
  }
}

struct Meeting {
  double connected = 0;  ///< Seconds until all clients are connected.
  double met = 0;  ///< Seconds of the barrier: add(), then wait() for a key that the last one sets.
};
Meeting meet_once(int clients) {
  const Server server;
  std::barrier gate(clients + 1);
  std::vector<std::thread> threads;
  const double begin = now();
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      const auto store = connect();
      gate.arrive_and_wait();
      if (store->add("came", 1) == clients) store->set("all", {1});
      store->wait({"all"});
      gate.arrive_and_wait();
    });
  }
  gate.arrive_and_wait();
  const double connected = now();
  gate.arrive_and_wait();
  const double met = now();
  for (auto& thread : threads) thread.join();
  return {connected - begin, met - connected};
}

void time_barriers(int clients, int rounds) {
  std::vector<double> connected, met;
  for (int i = 0; i < rounds; ++i) {
    const Meeting one = meet_once(clients);
    connected.push_back(one.connected * 1e3);
    met.push_back(one.met * 1e3);
  }
  std::printf("store_barrier,clients=%d,connect median %.1f ms,add and wait median %.1f ms\n",
              clients, median(connected), median(met));
}

}  // namespace

int main(int argc, char** argv) {
  c10::initLogging();  // for TORCH_CPP_LOG_LEVEL
  const std::vector<std::string> words(argv + 1, argv + argc);
  const int clients = words.size() > 1 ? std::atoi(words[1].c_str()) : 0;
  if (clients < 1 || clients > kMostClients || (words[0] != "ops" && words[0] != "barrier")) {
    std::fprintf(stderr,
                 "usage: store_bench ops CLIENTS [SECONDS] [ROUNDS] | barrier CLIENTS [ROUNDS]\n");
    return 2;
  }
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  shared = new (memory) Shared();
  const auto number = [&](size_t i, double otherwise) {
    return words.size() > i ? std::atof(words[i].c_str()) : otherwise;
  };
  if (words[0] == "ops")
    time_operations(clients, number(2, 1), static_cast<int>(number(3, 3)));
  else
    time_barriers(clients, static_cast<int>(number(2, 3)));
}
