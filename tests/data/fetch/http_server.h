#pragma once
// A small HTTP server on loopback with a test's answers.

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::testing {

struct HttpRequest {
  std::string path;
  std::optional<size_t> range_begin;  ///< Of "Range: bytes=N-".
};

struct HttpReply {
  int status = 200;
  std::string body{};
  std::string headers{};                ///< Further ones, each ended by CR LF.
  std::optional<size_t> close_after{};  ///< Closes the connection after so many bytes of the body.
};

/// Serves `body` whole, or the requested range.
HttpReply serve(const std::string& body, const HttpRequest& request);

class HttpServer {
 public:
  using Answer = std::function<HttpReply(const HttpRequest&)>;

  explicit HttpServer(Answer answer);
  ~HttpServer();

  std::string url(const std::string& path = "/file") const;
  std::vector<HttpRequest> requests() const;

 private:
  void run();
  void serve_one(int fd);

  Answer answer_;
  UniqueFd listener_;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  std::vector<HttpRequest> requests_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::testing
