#include "lockstep/store/etcd/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// The functions of libcurl in use.
struct Curl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_setopt) setopt;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_getinfo) getinfo;
  decltype(&curl_easy_cleanup) cleanup;
  decltype(&curl_easy_strerror) strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_multi_add_handle) multi_add;
  decltype(&curl_multi_remove_handle) multi_remove;
  decltype(&curl_multi_perform) multi_perform;
  decltype(&curl_multi_poll) multi_poll;
  decltype(&curl_multi_info_read) multi_info;
};

/// Never unloaded. Errors: kUnavailable.
Curl load_curl() {
  constexpr const char* kLibrary = "libcurl.so.4";
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("etcd is reached by {} (package libcurl4), which cannot be loaded: {}",
                            kLibrary, ::dlerror()));
  }
  Curl curl{};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (function == nullptr)
      throw Error(ErrorCode::kUnavailable, fmt::format("{} has no {}", kLibrary, name));
  };
  find(curl.global_init, "curl_global_init");
  find(curl.easy_init, "curl_easy_init");
  find(curl.setopt, "curl_easy_setopt");
  find(curl.perform, "curl_easy_perform");
  find(curl.getinfo, "curl_easy_getinfo");
  find(curl.cleanup, "curl_easy_cleanup");
  find(curl.strerror, "curl_easy_strerror");
  find(curl.slist_append, "curl_slist_append");
  find(curl.multi_init, "curl_multi_init");
  find(curl.multi_cleanup, "curl_multi_cleanup");
  find(curl.multi_add, "curl_multi_add_handle");
  find(curl.multi_remove, "curl_multi_remove_handle");
  find(curl.multi_perform, "curl_multi_perform");
  find(curl.multi_poll, "curl_multi_poll");
  find(curl.multi_info, "curl_multi_info_read");
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

const Curl& libcurl() {
  static const Curl curl = load_curl();
  return curl;
}

/// Headers of all requests. Without "Expect" a large request need not wait for a reply.
curl_slist* headers() {
  static curl_slist* const list = libcurl().slist_append(
      libcurl().slist_append(nullptr, "Content-Type: application/json"), "Expect:");
  return list;
}

/// One request in progress.
struct Transfer {
  CURL* handle;
  const HttpClient::OnBytes& on_bytes;
  std::string body;
  bool enough = false;
  bool too_large = false;
  std::exception_ptr failure;  ///< An exception of on_bytes: it must not pass through libcurl.

  bool take(std::string_view bytes) {
    long status = 0;
    libcurl().getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (on_bytes && status == 200) {
      enough = !on_bytes(bytes);
      return !enough;
    }
    too_large = body.size() + bytes.size() > HttpClient::kMaxBytes;
    if (!too_large) body += bytes;
    return !too_large;
  }
};

size_t receive_bytes(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  try {
    return transfer.take({data, size * count}) ? size * count : 0;
  } catch (...) {
    transfer.failure = std::current_exception();
    return 0;
  }
}

CURL* make_handle(const TlsFiles& tls) {
  const Curl& curl = libcurl();
  CURL* const handle = curl.easy_init();
  if (handle == nullptr) throw Error(ErrorCode::kUnavailable, "libcurl has no memory left");
  curl.setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl.setopt(handle, CURLOPT_NOPROXY, "*");  // members of a cluster are near
  curl.setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl.setopt(handle, CURLOPT_HTTPHEADER, headers());
  // A host that loses power during a call is noticed within 25 s.
  curl.setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl.setopt(handle, CURLOPT_TCP_KEEPIDLE, 10L);
  curl.setopt(handle, CURLOPT_TCP_KEEPINTVL, 5L);
  curl.setopt(handle, CURLOPT_WRITEFUNCTION, &receive_bytes);
  if (!tls.ca.empty()) curl.setopt(handle, CURLOPT_CAINFO, tls.ca.c_str());
  if (!tls.certificate.empty()) curl.setopt(handle, CURLOPT_SSLCERT, tls.certificate.c_str());
  if (!tls.key.empty()) curl.setopt(handle, CURLOPT_SSLKEY, tls.key.c_str());
  return handle;
}

/// A failure in one line. `written`: by libcurl, with names of hosts and files; or empty.
std::string reason_of(CURLcode code, const char* written) {
  std::string line = *written != '\0' ? written : libcurl().strerror(code);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

HttpClient::Outcome outcome_of(CURLcode code) {
  using Outcome = HttpClient::Outcome;
  switch (code) {
    case CURLE_OK:
      return Outcome::kAnswered;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return Outcome::kUnreachable;
    case CURLE_SSL_CONNECT_ERROR:
      return Outcome::kNoTls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return Outcome::kUntrusted;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return Outcome::kForeign;
    case CURLE_OPERATION_TIMEDOUT:
      return Outcome::kTimedOut;
    default:
      return Outcome::kBroken;
  }
}

HttpClient::Outcome outcome_of(const Transfer& transfer, CURLcode code) {
  if (transfer.enough) return HttpClient::Outcome::kAnswered;
  if (transfer.too_large && code != CURLE_OK) return HttpClient::Outcome::kTooLarge;
  return outcome_of(code);
}

}  // namespace

struct HttpClient::Idle {
  ~Idle() {
    for (CURL* handle : handles) libcurl().cleanup(handle);
  }
  std::vector<CURL*> handles;
};

HttpClient::HttpClient(TlsFiles tls) : tls_(std::move(tls)), idle_(std::make_unique<Idle>()) {
  libcurl();
}

HttpClient::~HttpClient() = default;

HttpClient::Result HttpClient::post(const std::string& url, const std::string& body,
                                    Deadline deadline, const OnBytes& on_bytes) {
  const Curl& curl = libcurl();
  CURL* handle = nullptr;
  {
    const MutexLock lock(mutex_);
    if (!idle_->handles.empty()) {
      handle = idle_->handles.back();
      idle_->handles.pop_back();
    }
  }
  if (handle == nullptr) handle = make_handle(tls_);
  Transfer transfer{handle, on_bytes, {}, false, false, nullptr};
  char reason[CURL_ERROR_SIZE] = "";
  curl.setopt(handle, CURLOPT_ERRORBUFFER, reason);
  curl.setopt(handle, CURLOPT_URL, url.c_str());
  curl.setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl.setopt(handle, CURLOPT_POSTFIELDS, body.data());
  curl.setopt(handle, CURLOPT_TIMEOUT_MS, std::max<long>(1, deadline.left_poll_ms()));
  curl.setopt(handle, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl.perform(handle);
  curl.setopt(handle, CURLOPT_ERRORBUFFER, nullptr);

  Result result;
  result.outcome = outcome_of(transfer, code);
  if (code != CURLE_OK) result.why = reason_of(code, reason);
  long status = 0;
  curl.getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  result.status = static_cast<int>(status);
  result.body = std::move(transfer.body);
  {
    const MutexLock lock(mutex_);
    idle_->handles.push_back(handle);
  }
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  return result;
}

namespace {

constexpr long kConnectMs = 5000;

}  // namespace

struct HttpStream::Impl {
  Impl(const TlsFiles& tls, const std::string& url, std::string posted)
      : sent(std::move(posted)), easy(make_handle(tls)), multi(libcurl().multi_init()) {
    const Curl& curl = libcurl();
    if (multi == nullptr) throw Error(ErrorCode::kUnavailable, "libcurl has no memory left");
    curl.setopt(easy, CURLOPT_URL, url.c_str());
    curl.setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
    curl.setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(sent.size()));
    curl.setopt(easy, CURLOPT_POSTFIELDS, sent.data());
    curl.setopt(easy, CURLOPT_WRITEFUNCTION, &Impl::take);
    curl.setopt(easy, CURLOPT_WRITEDATA, this);
    curl.setopt(easy, CURLOPT_ERRORBUFFER, reason);
    curl.multi_add(multi, easy);
  }
  ~Impl() {
    libcurl().multi_remove(multi, easy);
    libcurl().cleanup(easy);
    libcurl().multi_cleanup(multi);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static size_t take(char* data, size_t size, size_t count, void* context) {
    auto& self = *static_cast<Impl*>(context);
    if (self.come.size() + size * count > HttpClient::kMaxBytes) return 0;
    self.come.append(data, size * count);
    return size * count;
  }

  int status() const {
    long code = 0;
    libcurl().getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }

  /// Transfers all that is possible now; false if the stream has ended.
  bool move() {
    int running = 0;
    libcurl().multi_perform(multi, &running);
    int left = 0;
    while (const CURLMsg* message = libcurl().multi_info(multi, &left)) {
      if (message->msg == CURLMSG_DONE) ended = message->data.result;
    }
    return !ended;
  }

  std::string sent;
  CURL* easy;
  CURLM* multi;
  char reason[CURL_ERROR_SIZE] = "";
  std::string come;  ///< Received, but not passed on yet.
  std::optional<CURLcode> ended;
};

HttpStream::HttpStream(const TlsFiles& tls, const std::string& url, std::string body)
    : impl_(std::make_unique<Impl>(tls, url, std::move(body))) {}

HttpStream::~HttpStream() = default;

bool HttpStream::open() const {
  return !impl_->ended;
}

HttpClient::Result HttpStream::read(Deadline deadline, const HttpClient::OnBytes& on_bytes) {
  constexpr int kLongestPoll = 1000;
  HttpClient::Result result;
  while (true) {
    const bool alive = impl_->move();
    result.status = impl_->status();
    const bool streams = result.status == 200;
    if (streams && !impl_->come.empty()) {
      const std::string bytes = std::exchange(impl_->come, {});
      if (!on_bytes(bytes)) {
        result.outcome = HttpClient::Outcome::kAnswered;
        return result;
      }
    }
    if (!alive) break;
    if (deadline.passed()) {
      result.outcome = HttpClient::Outcome::kTimedOut;
      result.why = "no answer in time";
      return result;
    }
    libcurl().multi_poll(impl_->multi, nullptr, 0, std::min(deadline.left_poll_ms(), kLongestPoll),
                         nullptr);
  }
  const CURLcode code = *impl_->ended;
  result.outcome = code == CURLE_WRITE_ERROR ? HttpClient::Outcome::kTooLarge : outcome_of(code);
  if (code != CURLE_OK) result.why = reason_of(code, impl_->reason);
  result.body = std::exchange(impl_->come, {});
  return result;
}

}  // namespace lockstep::inline internal
