#include "lockstep/store/etcd/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

/// The functions of libcurl that are used here.
struct Curl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_setopt) setopt;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_getinfo) getinfo;
  decltype(&curl_easy_cleanup) cleanup;
  decltype(&curl_easy_strerror) strerror;
  decltype(&curl_slist_append) slist_append;
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
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

const Curl& libcurl() {
  static const Curl curl = load_curl();
  return curl;
}

/// Of all requests. Without "Expect" a large one does not wait for a permission.
curl_slist* headers() {
  static curl_slist* const list = libcurl().slist_append(
      libcurl().slist_append(nullptr, "Content-Type: application/json"), "Expect:");
  return list;
}

/// One request on its way.
struct Transfer {
  CURL* handle;
  const HttpClient::OnBytes& on_bytes;
  std::string body;
  bool enough = false;
  bool too_large = false;
  std::exception_ptr failure;  ///< What on_bytes threw: it may not pass through libcurl.

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
  // A host that lost its power while an answer is awaited is noticed within 25 s.
  curl.setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl.setopt(handle, CURLOPT_TCP_KEEPIDLE, 10L);
  curl.setopt(handle, CURLOPT_TCP_KEEPINTVL, 5L);
  curl.setopt(handle, CURLOPT_WRITEFUNCTION, &receive_bytes);
  if (!tls.ca.empty()) curl.setopt(handle, CURLOPT_CAINFO, tls.ca.c_str());
  if (!tls.certificate.empty()) curl.setopt(handle, CURLOPT_SSLCERT, tls.certificate.c_str());
  if (!tls.key.empty()) curl.setopt(handle, CURLOPT_SSLKEY, tls.key.c_str());
  return handle;
}

HttpClient::Outcome outcome_of(const Transfer& transfer, CURLcode code) {
  using Outcome = HttpClient::Outcome;
  if (code == CURLE_OK || transfer.enough) return Outcome::kAnswered;
  if (transfer.too_large) return Outcome::kTooLarge;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return Outcome::kUnreachable;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return Outcome::kForeign;
    case CURLE_OPERATION_TIMEDOUT:
      return Outcome::kTimedOut;
    default:
      return Outcome::kBroken;
  }
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
  curl.setopt(handle, CURLOPT_URL, url.c_str());
  curl.setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl.setopt(handle, CURLOPT_POSTFIELDS, body.data());
  curl.setopt(handle, CURLOPT_TIMEOUT_MS, std::max<long>(1, deadline.left_poll_ms()));
  curl.setopt(handle, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl.perform(handle);

  Result result;
  result.outcome = outcome_of(transfer, code);
  if (code != CURLE_OK) result.why = curl.strerror(code);
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

}  // namespace lockstep
