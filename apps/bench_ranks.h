#pragma once
// The ranks that a benchmark starts itself: forked processes of one host that meet over a store.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world.h"
#include "lockstep/world/host_id.h"

namespace lockstep::inline internal {

/// `port`: of the store on this host.
inline World bench_world(int rank, int size, int port, const std::string& secret) {
  World world;
  world.rank = world.local_rank = rank;
  world.size = world.local_size = size;
  world.launcher = "bench";
  world.host_id = this_host_id();
  world.secret = secret;
  world.store = connect_tcp_store({"127.0.0.1", port}, secret, Deadline::after(60s));
  return world;
}

/// Runs `body` in a child that dies with this process; returns its pid. An exception ends it with
/// status 1 and a line on standard error that begins with `who`. No destructors of static objects
/// run in it, because the parent has them too.
template <class Body>
pid_t fork_child(const std::string& who, const Body& body) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw io_error("fork");
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int status = ::getppid() == parent ? 0 : 1;
  try {
    if (status == 0) body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), error.what());
    status = 1;
  }
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace lockstep::inline internal
