#include "lockstep/launch/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "lockstep/base/children.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/process_handle.h"
#include "lockstep/base/process_limits.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// A pipe or socket pair: ours (non-blocking) and the child's.
struct StreamPair {
  UniqueFd ours;
  UniqueFd theirs;
};

StreamPair output_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw io_error("pipe");
  StreamPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pair;
}

StreamPair input_socket() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw io_error("socketpair");
  StreamPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pair;
}

/// Descriptors for the child's streams, a process group, and default signals.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    ::sigaddset(&signals, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  void connect(int fd, int target) { ::posix_spawn_file_actions_adddup2(&actions, fd, target); }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& words) {
  StreamPair in = input_socket();
  StreamPair out = output_pipe();
  StreamPair err = output_pipe();
  SpawnAttributes child;
  child.connect(in.theirs.get(), STDIN_FILENO);
  child.connect(out.theirs.get(), STDOUT_FILENO);
  child.connect(err.theirs.get(), STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int failure = 0;
  {
    const UsersDescriptorLimit limit;
    failure =
        ::posix_spawnp(&pid_, argv[0], &child.actions, &child.attributes, argv.data(), environ);
  }
  if (failure == ENOENT) throw Error(ErrorCode::kNotFound, words[0] + ": no such program");
  errno = failure;
  if (failure != 0) throw start_error("run " + words[0]);
  in_ = std::move(in.ours);
  out_ = std::move(out.ours);
  err_ = std::move(err.ours);
}

Subprocess::~Subprocess() {
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Subprocess::kill_group() const {
  if (!status_) ::kill(-pid_, SIGKILL);
}

std::optional<int> Subprocess::poll_end() {
  if (status_) return status_;
  if (const auto end = reap(pid_)) status_ = end->shell_code();
  return status_;
}

std::optional<int> Subprocess::wait(Deadline deadline) {
  if (poll_end()) return status_;
  const ProcessHandle process(pid_);
  while (!poll_end() && !deadline.passed()) {
    // If no handle can be had: every 10 ms.
    process.ended((process ? deadline : deadline.at_most(10ms)).left_poll_ms());
  }
  return poll_end();
}

bool read_available(int fd, std::string* text, size_t max_bytes) {
  std::array<char, 1 << 14> buffer{};
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const size_t room = max_bytes - std::min(max_bytes, text->size());
    text->append(buffer.data(), std::min(room, static_cast<size_t>(got)));
  }
}

ProgramOutput run_program(const std::vector<std::string>& words, Deadline deadline,
                          size_t max_bytes) {
  ProgramOutput output;
  try {
    Subprocess child(words);
    child.close_in();
    bool out_open = true;
    bool err_open = true;
    while ((out_open || err_open) && !deadline.passed()) {
      std::array<pollfd, 2> items{
          {{out_open ? child.out() : -1, POLLIN, 0}, {err_open ? child.err() : -1, POLLIN, 0}}};
      ::poll(items.data(), items.size(), deadline.left_poll_ms());
      if (items[0].revents != 0) out_open = read_available(child.out(), &output.out, max_bytes);
      if (items[1].revents != 0) err_open = read_available(child.err(), &output.err, max_bytes);
    }
    output.status = child.wait(deadline).value_or(124);
  } catch (const Error& error) {
    output.status = error.code() == ErrorCode::kNotFound ? 127 : 126;
    output.err = error.what();
  }
  return output;
}

}  // namespace lockstep::inline internal
