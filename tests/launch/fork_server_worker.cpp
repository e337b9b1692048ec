// A rank of a fork server. First argument: what happens before start_fork_server() ("thread" starts
// one, "exit" never reaches it, "late" calls it elsewhere, "load" takes long). Second: the rank's
// action.

#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/spawn.h"
#include "lockstep/world.h"
#include "lockstep/world/cpu_topology.h"

namespace {

/// Pid of the loaded process, which its ranks inherit.
const pid_t kLoadedBy = ::getpid();

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "-" : value;
}

int body(int argc, char** argv) {
  using namespace lockstep;
  const std::string act = argc > 2 ? argv[2] : "";
  const World world = World::join(Deadline::after(60s));
  int death_signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &death_signal);
  // A robust mutex shows its owner's death by the thread's number, which must be this process's
  // own.
  std::printf(
      "%s rank %d of %d attempt %d agent %s session %s dies by %d own number %s server fd %s\n",
      kLoadedBy == ::getpid() ? "loaded" : "forked", world.rank, world.size, world.restart_count,
      variable("LOCKSTEP_AGENT").rfind(std::to_string(::getppid()) + "-", 0) == 0 ? "parent"
                                                                                  : "stranger",
      ::getsid(0) == ::getpid() ? "own" : "shared", death_signal, ::raise(0) == 0 ? "yes" : "no",
      variable("LOCKSTEP_FORK_SERVER_FD").c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "err %d\n", world.rank);
  if (act == "cores") {
    std::printf("rank %d may run on %s of %s\n", world.rank, cpu_list(usable_cpus()).c_str(),
                variable("LOCKSTEP_CPUS").c_str());
    std::fflush(stdout);
  }
  store_barrier(*world.store, "said", world.rank, world.size, Deadline::after(60s));
  if (act == "kill" && world.restart_count == 0 && world.rank == 1) ::raise(SIGKILL);
  if (act == "orphan" && world.restart_count == 0 && world.rank == 1) {
    std::printf("loaded by %d\n", kLoadedBy);
    std::fflush(stdout);
    ::kill(kLoadedBy, SIGKILL);
    return 3;
  }
  if (act == "hang" || act == "kill") {
    if (act == "hang" || world.restart_count == 0) std::this_thread::sleep_for(600s);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  std::thread other;
  if (first == "thread") other = std::thread([] { ::usleep(3'000'000); });
  if (first == "exit" && std::getenv("LOCKSTEP_FORK_SERVER_FD") != nullptr) return 1;
  if (first == "load") {
    std::printf("loading\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(600));
  }
  const auto prepare = [] {
    std::printf("prepared\n");
    // Tests see it while the process waits. Ranks must not repeat the buffered output.
    std::fflush(stdout);
    std::printf("by the process that is loaded\n");
  };
  if (first != "late") lockstep::start_fork_server(prepare);
  if (other.joinable()) other.join();
  return lockstep::run_main("fork_server_worker", body, argc, argv);
}
