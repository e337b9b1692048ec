#include "apps/lockstep-bench-ddp/ranks.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "apps/bench_ranks.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/file.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::bench {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
  Pipe() {
    int fds[2];
    if (::pipe(fds) != 0) throw io_error("pipe");
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
};

struct Rank {
  int pid = 0;
  UniqueFd port;    ///< To the rank: the port of the store.
  UniqueFd result;  ///< From the rank.
};

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got; (got = ::read(fd, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  return text;
}

Rank start_rank(int rank, int size, const std::string& secret,
                const std::function<std::string(const World&)>& body) {
  Pipe port;
  Pipe result;
  const int pid = fork_child(fmt::format("rank {}", rank), [&] {
    port.write.reset();
    int number = 0;
    if (::read(port.read.get(), &number, sizeof number) != sizeof number) ::_exit(1);
    const std::string text = body(bench_world(rank, size, number, secret));
    write_all(result.write.get(), text.data(), text.size(), "result");
  });
  return {pid, std::move(port.write), std::move(result.read)};
}

}  // namespace

std::vector<std::string> run_ranks(int size, const std::function<std::string(const World&)>& body) {
  const std::string secret = make_job_secret();
  std::vector<Rank> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(start_rank(rank, size, secret, body));
  TcpStoreServer server({"127.0.0.1", 0, secret});
  const int port = server.port();
  for (const Rank& rank : ranks) write_all(rank.port.get(), &port, sizeof port, "port");
  std::vector<std::string> results;
  int failed = -1;
  for (int r = 0; r < size; ++r) {
    results.push_back(read_to_end(ranks[static_cast<size_t>(r)].result.get()));
    if (!results.back().empty() || failed >= 0) continue;
    failed = r;
    for (const Rank& rank : ranks) ::kill(rank.pid, SIGKILL);
  }
  for (const Rank& rank : ranks) ::waitpid(rank.pid, nullptr, 0);
  if (failed < 0) return results;
  throw Error(ErrorCode::kPeerLost, fmt::format("rank {} of the benchmark failed", failed));
}

}  // namespace lockstep::bench
