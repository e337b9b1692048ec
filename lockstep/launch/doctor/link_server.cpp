#include "lockstep/launch/doctor/link_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

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

/// On `host` if that is an address here, else on all, of IPv6 too where there is any.
UniqueFd listen_anywhere(const std::string& host, int port) {
  std::vector<std::string> places = {"::", "0.0.0.0"};
  if (is_literal(host)) places.insert(places.begin(), host);
  for (const std::string& place : places) {
    try {
      return tcp_listen(place, port);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnavailable || place == places.back()) throw;
    }
  }
  return {};
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

}  // namespace lockstep::doctor
