#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "lockstep/base/children.h"
#include "lockstep/base/counted.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/port_range.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/process_handle.h"
#include "lockstep/base/process_limits.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/identity.h"
#include "lockstep/world/secret.h"
#include "lockstep/world/spawn/ranks.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {
namespace {

/// How long to wait for the failure that caused the loss of a rank.
constexpr auto kCauseLimit = 1s;

/// Threads that a fork may leave behind: those before main(), of runtime libraries.
int harmless_threads = thread_count() + kThreadsOfSanitizer;

void refuse_threads() {
  // A joined thread, or one of a ProcessHandle, is still listed for a moment.
  const auto deadline = Deadline::after(2s);
  while (thread_count() > harmless_threads && !deadline.passed()) std::this_thread::sleep_for(1ms);
  const int others = thread_count() - harmless_threads;
  if (others <= 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("spawn of processes from one that has started {}, which "
                          "they would lack, with the locks these hold: spawn before libtorch's "
                          "first large operation and before a ProcessGroup is made, or set "
                          "SpawnOptions::threads",
                          counted(others, "other thread")));
}

/// While it lives, an ended child stays until it is waited for.
class DefaultSigchld {
 public:
  DefaultSigchld() {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &action, &before_);
  }
  ~DefaultSigchld() { ::sigaction(SIGCHLD, &before_, nullptr); }
  DefaultSigchld(const DefaultSigchld&) = delete;
  DefaultSigchld& operator=(const DefaultSigchld&) = delete;

 private:
  struct sigaction before_ {};
};

/// A pipe of packets: each write is one, each read takes one.
struct PacketPipe {
  UniqueFd read_end, write_end;

  PacketPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_DIRECT) != 0) throw io_error("pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  }
};

/// Where the ranks meet. The user's secret is kept, since they may join the ranks of other hosts by
/// it. Without one the store admits this user's processes only.
struct BootstrapStore {
  std::string secret = secret_of_environment();
  UniqueFd listener = tcp_listen("127.0.0.1", 0);
  ReservedPort torch_port{0};

  Environment environment(int num_ranks, int rank) const {
    JobAssignment assignment;
    assignment.run_id = "spawn";
    assignment.ranks = {.local_size = num_ranks, .role_size = num_ranks};
    assignment.world_size = num_ranks;
    assignment.store = {"127.0.0.1", local_port(listener.get())};
    assignment.secret = secret;
    assignment.master_addr = "127.0.0.1";
    assignment.master_port = torch_port.port();
    WorkerEnvOptions options;
    options.role = "default";
    options.cores = usable_cores();
    return worker_environment(this_environment(), assignment, rank, options);
  }
};

struct SpawnedRank {
  int rank = 0;
  pid_t pid = 0;
  ProcessHandle process;
};

class SpawnedRanks {
 public:
  explicit SpawnedRanks(int num_ranks) : num_ranks_(num_ranks) {}
  ~SpawnedRanks() {
    signal_all(SIGKILL);
    for (const SpawnedRank& child : alive_) {
      while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  SpawnedRanks(const SpawnedRanks&) = delete;
  SpawnedRanks& operator=(const SpawnedRanks&) = delete;

  void start(int rank, BootstrapStore& bootstrap, const RankBody& body) {
    const auto environment = bootstrap.environment(num_ranks_, rank);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throw start_error(fmt::format("fork of rank {} of {}", rank, num_ranks_));
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      bootstrap.listener.reset();
      failures_pipe_.read_end.reset();
      run(rank, environment, body);
    }
    alive_.push_back({rank, pid, ProcessHandle()});
  }

  /// After the last start(): handles may need threads.
  void watch() {
    for (SpawnedRank& child : alive_) child.process = ProcessHandle::of(child.pid);
  }

  std::vector<RankFailure> wait(std::chrono::milliseconds grace);

 private:
  [[noreturn]] void run(int rank, const Environment& environment, const RankBody& body) const;
  void poll_once(std::chrono::milliseconds limit);
  std::vector<SpawnedRank> take_ended(const std::vector<pollfd>& fds);
  void read_failures();
  bool knows_cause() const;
  void signal_all(int signal) const {
    for (const SpawnedRank& child : alive_) ::kill(child.pid, signal);
  }

  int num_ranks_;
  PacketPipe failures_pipe_;
  std::vector<SpawnedRank> alive_;
  std::vector<RankFailure> failures_;
};

/// The life of a rank.
void SpawnedRanks::run(int rank, const Environment& environment, const RankBody& body) const {
  ::clearenv();
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  harmless_threads = 1 + kThreadsOfSanitizer;
  int status = 0;
  try {
    body(rank);
  } catch (...) {
    const auto message = to_message(failure_of(rank, std::current_exception()));
    [[maybe_unused]] const auto put =
        ::write(failures_pipe_.write_end.get(), message.data(), message.size());
    status = 1;
  }
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(status);  // all other cleanup belongs to the forking process
}

std::vector<RankFailure> SpawnedRanks::wait(std::chrono::milliseconds grace) {
  while (!alive_.empty() && failures_.empty()) poll_once(1h);
  const auto cause_deadline = Deadline::after(kCauseLimit);
  while (!alive_.empty() && !knows_cause()) {
    const bool dying = std::any_of(alive_.begin(), alive_.end(), [](const SpawnedRank& child) {
      return dying_by_signal(child.pid);
    });
    if (cause_deadline.passed() && !dying) break;
    poll_once(10ms);
  }
  auto failures = failures_;  // later failures are caused by the signal
  signal_all(SIGTERM);
  const auto deadline = Deadline::after(grace);
  while (!alive_.empty() && !deadline.passed()) poll_once(deadline.left());
  signal_all(SIGKILL);
  while (!alive_.empty()) poll_once(1h);
  return failures;
}

bool SpawnedRanks::knows_cause() const {
  return failures_.empty() || !follows_another(cause_among(failures_));
}

/// Waits at most `limit` for an event, and records it.
void SpawnedRanks::poll_once(std::chrono::milliseconds limit) {
  std::vector<pollfd> fds = {{failures_pipe_.read_end.get(), POLLIN, 0}};
  for (const SpawnedRank& child : alive_) fds.push_back({child.process.fd(), POLLIN, 0});
  ::poll(fds.data(), fds.size(), static_cast<int>(limit.count()));
  std::vector<SpawnedRank> ended = take_ended(fds);
  read_failures();  // after the check for ended ranks: their messages have arrived
  for (const SpawnedRank& child : ended) {
    const auto status = reap(child.pid);
    const bool said = std::any_of(failures_.begin(), failures_.end(),
                                  [&](const auto& failure) { return failure.rank == child.rank; });
    if (!status || status->ok() || said) continue;
    const auto how = describe(*status);
    failures_.push_back({child.rank, ErrorCode::kPeerLost,
                         status->signal != 0 ? "killed by " + how : how, /*died=*/true});
  }
}

std::vector<SpawnedRank> SpawnedRanks::take_ended(const std::vector<pollfd>& fds) {
  std::vector<SpawnedRank> ended, rest;
  for (size_t i = 0; i < alive_.size(); ++i) {
    (fds[i + 1].revents != 0 ? ended : rest).push_back(std::move(alive_[i]));
  }
  alive_ = std::move(rest);
  return ended;
}

void SpawnedRanks::read_failures() {
  std::array<char, PIPE_BUF> packet;
  while (true) {
    const ssize_t got = ::read(failures_pipe_.read_end.get(), packet.data(), packet.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    failures_.push_back(failure_from_message({packet.data(), static_cast<size_t>(got)}));
  }
}

}  // namespace

std::vector<RankFailure> run_as_processes(int num_ranks, const RankBody& body,
                                          std::chrono::milliseconds grace) {
  refuse_threads();
  std::cout.flush();
  std::fflush(nullptr);  // otherwise each rank would write the buffered output
  const DefaultSigchld sigchld;
  BootstrapStore bootstrap;
  SpawnedRanks ranks(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) ranks.start(rank, bootstrap, body);
  ranks.watch();
  const TcpStoreServer store(std::move(bootstrap.listener), {.secret = bootstrap.secret});
  return ranks.wait(grace);
}

}  // namespace lockstep::inline internal
