#include "lockstep/comm/native/shm/fd_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/log.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/passed_descriptors.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/error.h"

namespace lockstep::shm {
namespace {

/// A guest of this user can hold up the others for this long.
constexpr std::chrono::seconds kPatienceOfOwner{1};
/// The owner's thread may have to wait for a core, behind many ranks that connect at once.
constexpr std::chrono::seconds kPatienceOfGuest{10};

struct FdServerAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

/// Any process can see that name and could take it later, so a client checks the user of the
/// server.
FdServerAddress server_address(uint64_t word) {
  const auto name = fmt::format("lockstep/door/{:x}", word);
  FdServerAddress result;
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

UniqueFd server_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

void limit_waits(int fd, std::chrono::seconds limit) {
  const timeval time{limit.count(), 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/// The target of `path`, a link of some /proc/PID/fd; empty if it is not readable.
std::string target_of(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
  return length > 0 ? std::string(target.data()) : std::string();
}

/// No other file is handed out or opened: access could damage other files on a cloned machine.
bool is_ours(const std::string& target) {
  return target.starts_with("/memfd:lockstep") || target.ends_with(".flight");
}

void serve(int listener) {
  while (true) {
    const UniqueFd guest(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!guest) {
      if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN) continue;
      if (errno != EMFILE && errno != ENFILE) return;
      ::usleep(10'000);
      continue;
    }
    if (!is_process_of(::geteuid(), guest.get())) continue;
    limit_waits(guest.get(), kPatienceOfOwner);
    int wanted = -1;
    if (::recv(guest.get(), &wanted, sizeof wanted, 0) != sizeof wanted) continue;
    if (is_ours(target_of(fmt::format("/proc/self/fd/{}", wanted)))) {
      const std::string_view number(reinterpret_cast<const char*>(&wanted), sizeof wanted);
      send_with_descriptors(guest.get(), number, {&wanted, 1});
    }
  }
}

UniqueFd listen_at(uint64_t word) {
  UniqueFd listener = server_socket();
  const FdServerAddress server = server_address(word);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&server.address), server.length) !=
          0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw io_error("unix socket for descriptors");
  }
  return listener;
}

uint64_t random_word() {
  uint64_t word = 0;
  if (::getrandom(&word, sizeof word, 0) != sizeof word) throw io_error("getrandom");
  return word;
}

/// The descriptor server of this process, while a group holds it.
struct OwnFdServer {
  Mutex mutex;
  std::weak_ptr<const FdServer> server LOCKSTEP_GUARDED_BY(mutex);
};

OwnFdServer& own_fd_server() {
  static auto& own = *new OwnFdServer;
  return own;
}

/// The answer to a request for a descriptor: the descriptor, or nothing.
UniqueFd receive_descriptor(int socket) {
  int number = -1;
  std::vector<UniqueFd> fds;
  const std::span<char> bytes(reinterpret_cast<char*>(&number), sizeof number);
  const ssize_t got = receive_with_descriptors(socket, bytes, &fds);
  if (got < 0) return UniqueFd();
  errno = ENOENT;
  return got == sizeof number && fds.size() == 1 ? std::move(fds[0]) : UniqueFd();
}

UniqueFd ask_fd_server(uint64_t word, int fd) {
  const UniqueFd socket = server_socket();
  const FdServerAddress server = server_address(word);
  if (!socket) return UniqueFd();
  limit_waits(socket.get(), kPatienceOfGuest);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&server.address), server.length) !=
      0) {
    return UniqueFd();
  }
  if (!is_process_of(::geteuid(), socket.get())) {
    errno = EPERM;
    return UniqueFd();
  }
  if (::send(socket.get(), &fd, sizeof fd, MSG_NOSIGNAL) != sizeof fd) return UniqueFd();
  return receive_descriptor(socket.get());
}

UniqueFd open_by_pid(const RemoteFd& remote, int flags) {
  const auto path = fmt::format("/proc/{}/fd/{}", remote.pid, remote.fd);
  if (!is_ours(target_of(path))) return UniqueFd();
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC));
}

}  // namespace

FdServer::FdServer()
    : word_(random_word()),
      listener_(listen_at(word_)),
      not_in_child_(listener_.get()),
      thread_(start_thread_with_signals_blocked([this] { serve(listener_.get()); })) {}

FdServer::~FdServer() {
  if (!is_of_this_process()) {
    leave_to_parent(thread_);
    return;
  }
  ::shutdown(listener_.get(), SHUT_RDWR);  // ends the wait for a guest
  thread_.join();
}

std::shared_ptr<const FdServer> start_fd_server() {
  auto& own = own_fd_server();
  const MutexLock lock(own.mutex);
  auto server = own.server.lock();
  if (server && server->is_of_this_process()) return server;
  try {
    server = std::make_shared<const FdServer>();
  } catch (const std::exception& error) {
    log_debug(fmt::format("descriptors are not handed out: {}", error.what()));
    return nullptr;
  }
  own.server = server;
  return server;
}

RemoteFd to_remote(int fd) {
  auto& own = own_fd_server();
  const MutexLock lock(own.mutex);
  const auto server = own.server.lock();
  const bool open = server && server->is_of_this_process();
  return {::getpid(), pid_space(), open ? server->word() : 0, fd};
}

std::string to_string(const RemoteFd& remote) {
  return fmt::format("{} {} {:x} {}", remote.pid, remote.pid_space, remote.server, remote.fd);
}

std::optional<RemoteFd> parse_remote_fd(const std::string& text) {
  RemoteFd remote;
  const int found = std::sscanf(text.c_str(), "%" SCNd64 " %" SCNu64 " %" SCNx64 " %" SCNd32,
                                &remote.pid, &remote.pid_space, &remote.server, &remote.fd);
  return found == 4 ? std::optional(remote) : std::nullopt;
}

UniqueFd open_remote(const RemoteFd& remote, int flags) {
  if (remote.pid_space != 0 && remote.pid_space == pid_space()) {
    if (UniqueFd opened = open_by_pid(remote, flags)) return opened;
  }
  return ask_fd_server(remote.server, remote.fd);
}

}  // namespace lockstep::shm
