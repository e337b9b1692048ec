#include "lockstep/comm/native/shm/door.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/log.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/quiet_thread.h"

namespace lockstep::shm {
namespace {

struct DoorName {
  sockaddr_un address{};
  socklen_t length = 0;
};

/// Anybody could take that name; who asks looks whose it is.
DoorName door_of(pid_t pid) {
  const auto name = fmt::format("lockstep/door/{}", pid);
  DoorName place;
  place.address.sun_family = AF_UNIX;
  std::memcpy(place.address.sun_path + 1, name.data(), name.size());
  place.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return place;
}

UniqueFd door_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

void limit_waits(int fd) {
  const timeval second{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
}

/// As the kernel knows the process at the other end.
ucred peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) peer.uid = UINT_MAX;
  return peer;
}

bool is_memory(int fd) {
  std::array<char, PATH_MAX> target{};
  const auto path = fmt::format("/proc/self/fd/{}", fd);
  return ::readlink(path.c_str(), target.data(), target.size() - 1) > 0 &&
         std::string(target.data()).starts_with("/memfd:lockstep");
}

/// A message of one number, and with it a descriptor.
struct Parcel {
  explicit Parcel(int* number) : part{number, sizeof *number} {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = room;
    head.msg_controllen = sizeof room;
  }
  iovec part;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr head{};
};

void hand_out(int to, int fd) {
  Parcel parcel(&fd);
  cmsghdr* const item = CMSG_FIRSTHDR(&parcel.head);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  ::sendmsg(to, &parcel.head, MSG_NOSIGNAL);
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
    if (peer_of(guest.get()).uid != ::geteuid()) continue;
    limit_waits(guest.get());
    int wanted = -1;
    if (::recv(guest.get(), &wanted, sizeof wanted, 0) != sizeof wanted) continue;
    if (is_memory(wanted)) hand_out(guest.get(), wanted);
  }
}

struct Door {
  UniqueFd listener;
  std::optional<NotInChild> not_in_child;
};

void start_serving() {
  auto door = std::make_unique<Door>();
  door->listener = door_socket();
  const DoorName place = door_of(::getpid());
  if (::bind(door->listener.get(), reinterpret_cast<const sockaddr*>(&place.address),
             place.length) != 0 ||
      ::listen(door->listener.get(), 64) != 0) {
    throw io_error("unix socket for descriptors");
  }
  door->not_in_child.emplace(door->listener.get());
  // As long as the process: groups come and go.
  start_quiet_thread([door = std::shared_ptr<Door>(std::move(door))] {
    serve(door->listener.get());
  }).detach();
}

}  // namespace

void open_door() {
  static Mutex mutex;
  static std::optional<pid_t> opened_by;
  const MutexLock lock(mutex);
  if (opened_by == ::getpid() || ::prctl(PR_GET_DUMPABLE) == 1) return;
  opened_by = ::getpid();
  try {
    start_serving();
  } catch (const std::exception& error) {
    log_debug(fmt::format("descriptors are not handed out: {}", error.what()));
  }
}

UniqueFd ask_at_door(pid_t pid, int fd) {
  const UniqueFd socket = door_socket();
  const DoorName place = door_of(pid);
  limit_waits(socket.get());
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place.address),
                           place.length) != 0) {
    return UniqueFd();
  }
  const ucred host = peer_of(socket.get());
  if (host.uid != ::geteuid() || host.pid != pid) return UniqueFd();
  if (::send(socket.get(), &fd, sizeof fd, MSG_NOSIGNAL) != sizeof fd) return UniqueFd();
  int number = -1;
  Parcel parcel(&number);
  if (::recvmsg(socket.get(), &parcel.head, MSG_CMSG_CLOEXEC) != sizeof number) return UniqueFd();
  const cmsghdr* const item = CMSG_FIRSTHDR(&parcel.head);
  if (item == nullptr || item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS ||
      item->cmsg_len != CMSG_LEN(sizeof(int))) {
    return UniqueFd();
  }
  int handed = -1;
  std::memcpy(&handed, CMSG_DATA(item), sizeof handed);
  return UniqueFd(handed);
}

}  // namespace lockstep::shm
