#pragma once
// POST by libcurl. The library is loaded with the first client, so that programs without etcd do
// not pay for it.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/mutex.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// PEM files; empty: the system's authorities, no client certificate.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

class HttpClient {
 public:
  /// Errors: kUnavailable with the reason if libcurl cannot be loaded.
  explicit HttpClient(TlsFiles tls);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  enum class Outcome {
    kAnswered,     ///< `status` and `body` are set, or `on_bytes` has stopped.
    kUnreachable,  ///< No connection was made, so nothing was sent.
    kNoTls,        ///< The same: there is a server, but its TLS handshake failed.
    kUntrusted,    ///< The same: TLS files are unusable, or they do not trust the server.
    kBroken,       ///< Perhaps sent, but not answered.
    kTimedOut,     ///< The same, at the deadline.
    kForeign,      ///< The server does not speak HTTP.
    kTooLarge,     ///< The answer is longer than allowed.
  };
  struct Result {
    Outcome outcome = Outcome::kBroken;
    int status = 0;
    std::string body;  ///< At most `max_bytes`; empty if they went to `on_bytes`.
    std::string why;   ///< The reason if not kAnswered.
  };
  /// Takes the body of an answer with status 200 in pieces; false: enough.
  using OnBytes = std::function<bool(std::string_view)>;
  /// From any thread; each uses its own connection meanwhile.
  Result post(const std::string& url, const std::string& body, Deadline deadline,
              const OnBytes& on_bytes = nullptr);

  static constexpr size_t kMaxBytes = size_t{100} << 20;

  /// TLS files, for a stream to the same service.
  const TlsFiles& tls() const { return tls_; }

 private:
  struct Idle;
  TlsFiles tls_;
  Mutex mutex_;
  std::unique_ptr<Idle> idle_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Handles with their connections.
};

/// One POST with an endless answer: it stays open between calls, on its own connection. Used by one
/// thread at a time.
class HttpStream {
 public:
  HttpStream(const TlsFiles& tls, const std::string& url, std::string body);
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  /// Passes received bytes to `on_bytes` until that returns false (kAnswered), the deadline passes
  /// (kTimedOut; the stream is still open), or the stream ends.
  HttpClient::Result read(Deadline deadline, const HttpClient::OnBytes& on_bytes);
  /// Whether it can still be read.
  bool open() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::inline internal
