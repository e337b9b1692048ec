#include "tests/data/fetch/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

/// Reads up to the empty line; the requests of these tests have no body.
std::string read_request(int fd, Deadline deadline) {
  std::string text;
  while (!text.ends_with("\r\n\r\n") && text.size() < 65536) {
    char byte = 0;
    recv_all(fd, &byte, 1, deadline, "client");
    text += byte;
  }
  return text;
}

HttpRequest parse(const std::string& text) {
  HttpRequest request;
  const size_t path = text.find(' ') + 1;
  request.path = text.substr(path, text.find(' ', path) - path);
  const std::string range = "\r\nRange: bytes=";
  if (const size_t at = text.find(range); at != std::string::npos) {
    request.range_begin = std::stoull(text.substr(at + range.size()));
  }
  return request;
}

}  // namespace

HttpReply serve(const std::string& body, const HttpRequest& request) {
  if (!request.range_begin) return {.body = body};
  const size_t begin = *request.range_begin;
  if (begin >= body.size()) return {.status = 416};
  return {.status = 206,
          .body = body.substr(begin),
          .headers = fmt::format("Content-Range: bytes {}-{}/{}\r\n", begin, body.size() - 1,
                                 body.size())};
}

HttpServer::HttpServer(Answer answer)
    : answer_(std::move(answer)),
      listener_(tcp_listen("127.0.0.1", 0)),
      thread_([this] { run(); }) {}

HttpServer::~HttpServer() {
  stopping_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);  // wakes the accepting thread
  thread_.join();
}

std::string HttpServer::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", local_port(listener_.get()), path);
}

std::vector<HttpRequest> HttpServer::requests() const {
  MutexLock lock(mutex_);
  return requests_;
}

void HttpServer::run() {
  while (!stopping_) {
    try {
      const UniqueFd fd = tcp_accept(listener_.get(), Deadline::after(1s));
      serve_one(fd.get());
    } catch (const Error&) {
      // The client disconnected, no request came for a while, or the test is over.
    }
  }
}

void HttpServer::serve_one(int fd) {
  const auto deadline = Deadline::after(10s);
  const HttpRequest request = parse(read_request(fd, deadline));
  {
    MutexLock lock(mutex_);
    requests_.push_back(request);
  }
  const HttpReply reply = answer_(request);
  const std::string head =
      fmt::format("HTTP/1.1 {} Status\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
                  reply.status, reply.body.size(), reply.headers);
  const size_t size = reply.close_after.value_or(reply.body.size());
  send_all(fd, head.data(), head.size(), deadline, "client");
  send_all(fd, reply.body.data(), size, deadline, "client");
  ::shutdown(fd, SHUT_WR);
}

}  // namespace lockstep::testing
