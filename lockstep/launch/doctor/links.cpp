#include "lockstep/launch/doctor/links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::doctor {
namespace {

constexpr size_t kMaxVisitors = 2048;

bool is_literal(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

/// Listens on `host` if that is an address here, else on all addresses.
UniqueFd listen_anywhere(const std::string& host, int port) {
  if (!is_literal(host)) return tcp_listen(kAllAddresses, port);
  try {
    return tcp_listen(host, port);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) throw;
    return tcp_listen(kAllAddresses, port);
  }
}

using Clock = Deadline::Clock;

std::string meaning(int failure) {
  if (failure == ECONNREFUSED) return "refused: a firewall rejects, or the name leads elsewhere";
  return std::strerror(failure);
}

/// One attempt at the first address of a name, as programs do. Errors: kUnavailable, kTimeout.
UniqueFd connect_once(const LinkTarget& target, Deadline deadline) {
  std::string problem;
  const AddressList list = look_up(target.name, target.port, &problem);
  if (!list) throw Error(ErrorCode::kUnavailable, problem);
  ConnectAttempt attempt = attempt_connect(*list, deadline);
  errno = attempt.failure;
  if (attempt.no_socket) throw io_error("socket");
  if (errno == EINPROGRESS)
    throw Error(ErrorCode::kTimeout, "no answer: a firewall drops, or the way is cut");
  if (errno != 0) throw Error(ErrorCode::kUnavailable, meaning(errno));
  return std::move(attempt.fd);
}

int greet(int fd, const std::string& cookie, char wish, Deadline deadline) {
  const std::string greeting = cookie + wish;
  send_all(fd, greeting.data(), greeting.size(), deadline, "it");
  std::array<unsigned char, 4> answer{};
  recv_all(fd, answer.data(), answer.size(), deadline, "it");
  return answer[0] | answer[1] << 8 | answer[2] << 16 | answer[3] << 24;
}

std::string try_link(const LinkTarget& target, const std::string& cookie,
                     const std::vector<std::string>& names, Clock::duration limit) {
  const Deadline deadline = Deadline::after(limit);
  try {
    const UniqueFd fd = connect_once(target, deadline);
    const int index = greet(fd.get(), cookie, kEcho, deadline);
    if (index == target.index) return "";
    return index >= 0 && index < static_cast<int>(names.size())
               ? "leads to " + names[static_cast<size_t>(index)]
               : "leads to a stranger";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kPeerLost) return "something else answers there";
    return error.what();
  }
}

double median_latency_us(const LinkTarget& target, const std::string& cookie, Deadline deadline) {
  const UniqueFd fd = connect_once(target, deadline);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  greet(fd.get(), cookie, kEcho, deadline);
  const auto end = Clock::now() + 200ms;
  std::vector<double> times;
  std::array<char, 8> bytes{};
  while (times.size() < 200 && (times.size() < 3 || Clock::now() < end)) {
    const auto start = Clock::now();
    send_all(fd.get(), bytes.data(), bytes.size(), deadline, target.name);
    recv_all(fd.get(), bytes.data(), bytes.size(), deadline, target.name);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double stream_gbit_s(const LinkTarget& target, const std::string& cookie, Clock::duration time,
                     Deadline deadline) {
  UniqueFd fd = connect_once(target, deadline);
  greet(fd.get(), cookie, kSink, deadline);
  const std::vector<char> chunk(1 << 18);
  const auto start = Clock::now();
  const Deadline end = Deadline::at(start + time);
  while (!end.passed()) {
    if (::send(fd.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) continue;
    if (errno != EAGAIN && errno != EINTR)
      throw Error(ErrorCode::kPeerLost, std::string("while sending: ") + std::strerror(errno));
    pollfd item{fd.get(), POLLOUT, 0};
    ::poll(&item, 1, end.left_poll_ms());
  }
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) throw io_error("TCP_INFO");
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  abort_connection(std::move(fd));  // data still under way is of no use
  return static_cast<double>(info.tcpi_bytes_acked) * 8 / seconds / 1e9;
}

}  // namespace

LinkServer::LinkServer(std::string cookie, int index) : cookie_(std::move(cookie)), index_(index) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw io_error("pipe");
  stop_read_.reset(ends[0]);
  stop_write_.reset(ends[1]);
}

LinkServer::~LinkServer() {
  stop_write_.reset();
  if (thread_.joinable()) thread_.join();
}

ListeningPort LinkServer::open(const std::string& host, int port) {
  ListeningPort result;
  result.asked = port;
  try {
    UniqueFd listener = listen_anywhere(host, port);
    result.number = local_port(listener.get());
    listeners_.push_back(std::move(listener));
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

void LinkServer::start() {
  thread_ = std::thread([this] { serve(); });
}

void LinkServer::serve() {
  while (true) {
    std::vector<pollfd> items = {{stop_read_.get(), POLLIN, 0}};
    for (const auto& listener : listeners_) items.push_back({listener.get(), POLLIN, 0});
    for (const auto& visitor : visitors_) items.push_back({visitor.fd.get(), POLLIN, 0});
    if (::poll(items.data(), items.size(), -1) < 0 && errno != EINTR) return;
    if (items[0].revents != 0) return;
    const size_t first = 1 + listeners_.size();
    for (size_t i = first; i < items.size(); ++i) {
      Visitor& visitor = visitors_[i - first];
      if (items[i].revents != 0 && !attend(visitor)) visitor.fd.reset();
    }
    std::erase_if(visitors_, [](const Visitor& visitor) { return !visitor.fd; });
    for (size_t i = 1; i < first; ++i) {
      if (items[i].revents != 0) accept_all(items[i].fd);
    }
  }
}

void LinkServer::accept_all(int listener) {
  while (visitors_.size() < kMaxVisitors) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    visitors_.push_back({std::move(fd), "", 0});
  }
}

bool LinkServer::attend(Visitor& visitor) const {
  if (visitor.wish == 0) return take_greeting(visitor);
  std::array<char, 1 << 18> buffer;
  const ssize_t got = ::recv(visitor.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (visitor.wish == kSink) return true;
  return ::send(visitor.fd.get(), buffer.data(), static_cast<size_t>(got),
                MSG_NOSIGNAL | MSG_DONTWAIT) == got;
}

bool LinkServer::take_greeting(Visitor& visitor) const {
  std::array<char, kCookieBytes + 1> buffer{};
  const size_t wanted = kCookieBytes + 1 - visitor.greeting.size();
  const ssize_t got = ::recv(visitor.fd.get(), buffer.data(), wanted, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  visitor.greeting.append(buffer.data(), static_cast<size_t>(got));
  if (visitor.greeting.size() < kCookieBytes + 1) return true;
  if (!visitor.greeting.starts_with(cookie_)) return false;
  visitor.wish = visitor.greeting.back();
  std::array<char, 4> answer{};
  for (int i = 0; i < 4; ++i) answer[static_cast<size_t>(i)] = static_cast<char>(index_ >> (8 * i));
  return ::send(visitor.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == 4;
}

std::vector<std::string> try_links(const std::vector<LinkTarget>& targets,
                                   const std::string& cookie, const std::vector<std::string>& names,
                                   Clock::duration limit) {
  constexpr size_t kAtOnce = 256;
  std::vector<std::string> problems(targets.size());
  for (size_t begin = 0; begin < targets.size(); begin += kAtOnce) {
    std::vector<std::thread> threads;
    for (size_t i = begin; i < std::min(targets.size(), begin + kAtOnce); ++i) {
      threads.emplace_back([&, i] { problems[i] = try_link(targets[i], cookie, names, limit); });
    }
    for (auto& thread : threads) thread.join();
  }
  return problems;
}

LinkSpeed measure_link(const LinkTarget& target, const std::string& cookie, Clock::duration time) {
  const Deadline deadline = Deadline::after(time + 10s);
  LinkSpeed speed;
  speed.latency_us = median_latency_us(target, cookie, deadline);
  speed.gbit_s = stream_gbit_s(target, cookie, time, deadline);
  return speed;
}

}  // namespace lockstep::doctor
