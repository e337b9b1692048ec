#pragma once
// POST by libcurl, which is loaded when the first client is made: a program that never talks to
// etcd does not pay for it.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/mutex.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// Files in PEM; empty: the system's authorities, no certificate of one's own.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

class HttpClient {
 public:
  /// Errors: kUnavailable when libcurl cannot be loaded; says why.
  explicit HttpClient(TlsFiles tls);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  enum class Outcome {
    kAnswered,     ///< `status` and `body` are there, or `on_bytes` has had enough.
    kUnreachable,  ///< No connection was made, so nothing was sent.
    kBroken,       ///< Sent, perhaps, but not answered.
    kTimedOut,     ///< The same, at the deadline.
    kForeign,      ///< What answered does not speak HTTP.
    kTooLarge,     ///< The answer is longer than allowed.
  };
  struct Result {
    Outcome outcome = Outcome::kBroken;
    int status = 0;
    std::string body;  ///< At most `max_bytes`; nothing when they went to `on_bytes`.
    std::string why;   ///< Of what is not kAnswered.
  };
  /// What comes of an answer with status 200, as it comes; false: that is enough.
  using OnBytes = std::function<bool(std::string_view)>;
  /// From any thread; each has a connection of its own meanwhile.
  Result post(const std::string& url, const std::string& body, Deadline deadline,
              const OnBytes& on_bytes = nullptr);

  static constexpr size_t kMaxBytes = size_t{100} << 20;

  /// Files of TLS, for a stream to the same service.
  const TlsFiles& tls() const { return tls_; }

 private:
  struct Idle;
  TlsFiles tls_;
  Mutex mutex_;
  std::unique_ptr<Idle> idle_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Handles with their connections.
};

/// One POST whose answer has no end: it stays open between calls, on a connection of its own. Used
/// by one thread at a time.
class HttpStream {
 public:
  HttpStream(const TlsFiles& tls, const std::string& url, std::string body);
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  /// Hands what comes to `on_bytes` until that has had enough (kAnswered), the deadline passes
  /// (kTimedOut; the stream is still open), or the stream ends.
  HttpClient::Result read(Deadline deadline, const HttpClient::OnBytes& on_bytes);
  /// It can be read on.
  bool open() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
