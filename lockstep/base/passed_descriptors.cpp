#include "lockstep/base/passed_descriptors.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace lockstep::inline internal {
namespace {

/// A message of one part, with room for descriptors.
struct Message {
  Message(void* data, size_t size) : part{data, size} {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = room;
    head.msg_controllen = sizeof room;
  }
  iovec part;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * kMaxPassedDescriptors)] = {};
  msghdr head{};
};

/// The descriptors that came with a message.
std::vector<UniqueFd> taken(msghdr& head) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* item = CMSG_FIRSTHDR(&head); item != nullptr; item = CMSG_NXTHDR(&head, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> fds,
                              int flags) {
  if (fds.empty() || fds.size() > kMaxPassedDescriptors) {
    errno = EINVAL;
    return -1;
  }
  Message message(const_cast<char*>(bytes.data()), bytes.size());
  message.head.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const item = CMSG_FIRSTHDR(&message.head);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(item), fds.data(), fds.size_bytes());
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message.head, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t receive_with_descriptors(int socket, std::span<char> bytes, std::vector<UniqueFd>* fds,
                                 int flags) {
  Message message(bytes.data(), bytes.size());
  const ssize_t got = ::recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC | flags);
  if (got < 0 || message.head.msg_controllen == 0) return got;
  std::vector<UniqueFd> some = taken(message.head);
  if ((message.head.msg_flags & MSG_CTRUNC) != 0) return got;
  for (auto& fd : some) fds->push_back(std::move(fd));
  return got;
}

}  // namespace lockstep::inline internal
