#include "tests/support/ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <numeric>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/literals.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/host_id.h"
#include "lockstep/world/lives.h"

namespace lockstep::testing {
namespace {

std::vector<World> plan_worlds(const HostLayout& hosts) {
  std::vector<World> worlds;
  const int size = std::accumulate(hosts.begin(), hosts.end(), 0);
  for (size_t node = 0; node < hosts.size(); ++node) {
    for (int local = 0; local < hosts[node]; ++local) {
      World world;
      world.rank = static_cast<int>(worlds.size());
      world.size = size;
      world.local_rank = local;
      world.local_size = hosts[node];
      world.node_rank = static_cast<int>(node);
      world.num_nodes = static_cast<int>(hosts.size());
      world.launcher = "test";
      world.host_id = this_host_id() + "/" + std::to_string(node);
      worlds.push_back(world);
    }
  }
  return worlds;
}

/// Reaps until all have ended or the limit passes; then kills the rest.
std::vector<int> reap(std::vector<int> pids, Deadline deadline) {
  std::vector<int> ends(pids.size(), 0);
  for (size_t left = pids.size(); left > 0;) {
    for (size_t i = 0; i < pids.size(); ++i) {
      int status = 0;
      if (pids[i] <= 0 || ::waitpid(pids[i], &status, WNOHANG) != pids[i]) continue;
      ends[i] = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
      pids[i] = 0;
      --left;
    }
    if (left > 0 && deadline.passed()) {
      for (const int pid : pids) {
        if (pid > 0) ::kill(pid, SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ends;
}

[[noreturn]] void run_child(World world, const RankBody& body, const RankBody& before, int port,
                            const std::string& secret) {
  int status = 0;
  try {
    if (before) before(world);
    world.secret = secret;
    world.store = connect_tcp_store({"127.0.0.1", port}, secret, Deadline::after(30s));
    show_life(*world.store, world.rank, Deadline::after(30s));  // as World::join() does
    body(world);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", world.rank, error.what());
    status = 1;
  }
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

void run_rank_threads(const HostLayout& hosts, const RankBody& body) {
  auto worlds = plan_worlds(hosts);
  const auto store = make_memory_store();
  std::vector<std::exception_ptr> failures(worlds.size());
  std::vector<std::thread> threads;
  for (auto& world : worlds) {
    world.store = store;
    threads.emplace_back([&body, &failures, world] {
      try {
        body(world);
      } catch (...) {
        failures[static_cast<size_t>(world.rank)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

std::vector<int> run_rank_processes(
    const HostLayout& hosts, const RankBody& body, std::chrono::milliseconds limit,
    const std::function<void(const std::vector<int>& pids)>& started, const RankBody& before) {
  const auto worlds = plan_worlds(hosts);
  // The server lives in a process of its own: forking from a process with threads is unsafe.
  const std::string secret = make_job_secret();
  int report[2];
  if (::pipe(report) != 0) throw std::runtime_error("pipe");
  const int server = ::fork();
  if (server == 0) {
    TcpStoreServer store({"127.0.0.1", 0, secret});
    const int port = store.port();
    if (::write(report[1], &port, sizeof port) != sizeof port) ::_exit(1);
    while (true) ::pause();
  }
  int port = 0;
  if (::read(report[0], &port, sizeof port) != sizeof port) throw std::runtime_error("no store");
  ::close(report[0]);
  ::close(report[1]);
  std::vector<int> pids;
  for (const auto& world : worlds) {
    const int pid = ::fork();
    if (pid == 0) run_child(world, body, before, port, secret);
    pids.push_back(pid);
  }
  if (started) started(pids);
  auto ends = reap(pids, Deadline::after(limit));
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return ends;
}

}  // namespace lockstep::testing
