#include "tests/tensor/hccl/fake_hub.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "lockstep/base/unique_fd.h"

namespace lockstep::testing::hccl {
namespace {

bool write_all(int socket, const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool read_all(int socket, void* data, size_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Else a message of two parts waits for an acknowledgement in between.
void send_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

template <class T>
void reduce_as(Bytes& into, const Bytes& other, int reduction) {
  for (size_t at = 0; at + sizeof(T) <= into.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, into.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    // Integers wrap.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint32_t, float>;
    const auto x = static_cast<Wide>(a), y = static_cast<Wide>(b);
    const T results[] = {static_cast<T>(x + y), static_cast<T>(x * y), a < b ? b : a,
                         b < a ? b : a};
    std::memcpy(into.data() + at, &results[reduction], sizeof(T));
  }
}

void reduce(Bytes& into, const Bytes& other, int type, int reduction) {
  switch (type) {
    case 0:
      return reduce_as<int8_t>(into, other, reduction);
    case 2:
      return reduce_as<int32_t>(into, other, reduction);
    case 3:
      return reduce_as<c10::Half>(into, other, reduction);
    case 4:
      return reduce_as<float>(into, other, reduction);
    default:
      return reduce_as<c10::BFloat16>(into, other, reduction);
  }
}

struct Asked {
  Request request;
  Bytes data;
};

/// The operations under way, by rank: at most one each.
class Hub {
 public:
  explicit Hub(UniqueFd listener) : listener_(std::move(listener)) {}

  /// Until all connections have ended.
  void run() {
    do {
      std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
      for (const auto& socket : sockets_) polled.push_back({socket.get(), POLLIN, 0});
      ::poll(polled.data(), polled.size(), -1);
      if (polled[0].revents != 0) {
        sockets_.emplace_back(::accept(listener_.get(), nullptr, nullptr));
        send_at_once(sockets_.back().get());
      }
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents != 0 && !take(polled[i].fd)) lose(polled[i].fd);
      }
    } while (!sockets_.empty());
  }

 private:
  bool take(int socket) {
    Request request;
    if (!read_all(socket, &request, sizeof request)) return false;
    Bytes data(request.bytes);
    if (!read_all(socket, data.data(), data.size())) return false;
    if (lost_) return answer(socket, kRemote, {});
    socket_of_[request.rank] = socket;
    asked_[request.rank] = {request, std::move(data)};
    return request.operation == Operation::kSend   ? match(request.rank, request.peer)
           : request.operation == Operation::kRecv ? match(request.peer, request.rank)
                                                   : meet(request);
  }
  /// A rank is gone: all that wait learn it, now and later.
  void lose(int socket) {
    std::erase_if(sockets_, [&](const UniqueFd& held) { return held.get() == socket; });
    lost_ = true;
    for (const auto& [rank, asked] : asked_) {
      if (socket_of_[rank] != socket) answer(socket_of_[rank], kRemote, {});
    }
    asked_.clear();
  }
  static bool answer(int socket, int error, const Bytes& data) {
    const Reply reply{error, data.size()};
    return write_all(socket, &reply, sizeof reply) && write_all(socket, data.data(), data.size());
  }
  bool is_under_way(int rank, Operation operation, int peer) const {
    const auto asked = asked_.find(rank);
    return asked != asked_.end() && asked->second.request.operation == operation &&
           asked->second.request.peer == peer;
  }
  /// A message moves once both ends are there.
  bool match(int from, int to) {
    if (!is_under_way(from, Operation::kSend, to) || !is_under_way(to, Operation::kRecv, from)) {
      return true;
    }
    const Bytes message = std::move(asked_[from].data);
    const bool fits = asked_[from].request.count == asked_[to].request.count;
    asked_.erase(from);
    asked_.erase(to);
    const int error = fits ? 0 : kParameter;
    return answer(socket_of_[from], error, {}) && answer(socket_of_[to], error, message);
  }
  /// A collective ends once all ranks are there.
  bool meet(const Request& request) {
    if (static_cast<int>(asked_.size()) < request.size) return true;
    bool equal = true;
    for (const auto& [rank, asked] : asked_) {
      const Request& other = asked.request;
      equal &= other.operation == request.operation && other.count == request.count &&
               other.type == request.type && other.reduction == request.reduction &&
               other.peer == request.peer && other.size == request.size;
    }
    const auto asked = std::exchange(asked_, {});
    const Bytes whole = equal ? result(asked, request) : Bytes{};
    for (const auto& [rank, one] : asked) {
      const bool scattered = request.operation == Operation::kReduceScatter;
      const size_t part = whole.size() / static_cast<size_t>(request.size);
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(scattered ? rank * part : 0);
      const auto end = scattered ? begin + static_cast<ptrdiff_t>(part) : whole.end();
      answer(socket_of_[rank], equal ? 0 : kParameter, Bytes(begin, end));
    }
    return true;
  }
  static Bytes result(const std::map<int, Asked>& asked, const Request& request) {
    if (request.operation == Operation::kBroadcast) return asked.at(request.peer).data;
    Bytes whole;
    for (const auto& [rank, one] : asked) {
      if (request.operation == Operation::kAllGather) {
        whole.insert(whole.end(), one.data.begin(), one.data.end());
      } else if (whole.empty()) {
        whole = one.data;
      } else {
        reduce(whole, one.data, request.type, request.reduction);
      }
    }
    return whole;
  }

  UniqueFd listener_;
  std::vector<UniqueFd> sockets_;
  std::map<int, int> socket_of_;  // by rank
  std::map<int, Asked> asked_;    // by rank
  bool lost_ = false;
};

}  // namespace

int start_hub() {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = loopback(0);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), any, length) != 0 || ::listen(listener.get(), 128) != 0) return -1;
  ::getsockname(listener.get(), any, &length);
  std::thread([hub = std::make_shared<Hub>(std::move(listener))] { hub->run(); }).detach();
  return ntohs(address.sin_port);
}

int connect_to_hub(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return -1;
  }
  send_at_once(socket.get());
  return socket.release();
}

int ask_hub(int socket, const Request& request, const void* data, Bytes& result) {
  Reply reply{};
  if (!write_all(socket, &request, sizeof request) || !write_all(socket, data, request.bytes) ||
      !read_all(socket, &reply, sizeof reply)) {
    return kRemote;
  }
  result.resize(reply.bytes);
  return read_all(socket, result.data(), result.size()) ? reply.error : kRemote;
}

uint64_t element_bytes(int type) {
  switch (type) {
    case 0:
      return 1;
    case 3:
    case 11:
      return 2;
    case 2:
    case 4:
      return 4;
    default:
      return 0;
  }
}

}  // namespace lockstep::testing::hccl
