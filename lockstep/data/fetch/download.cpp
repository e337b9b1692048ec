#include "lockstep/data/fetch/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr long kWholeFile = 200;
constexpr long kRangeNotSatisfiable = 416;

/// One for each host: locks on folders do not reach other hosts by NFS.
fs::path part_of(const Download& what) {
  return fmt::format("{}.{}.part", what.path.string(), what.host);
}

int64_t size_of(const fs::path& path) {
  std::error_code failure;
  const auto size = fs::file_size(path, failure);
  return failure ? 0 : static_cast<int64_t>(size);
}

/// One request, writing to the part from where that ends.
struct Transfer {
  const Download& what;
  CURL* curl;
  UniqueFd file;
  int64_t begin = 0;  // bytes from an earlier transfer
  int64_t received = 0;
  std::exception_ptr write_failure;
};

/// A server that ignores Range sends the whole file again, with status 200: drop the beginning.
void drop_begin_if_whole(Transfer& transfer) {
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  if (transfer.received > 0 || transfer.begin == 0 || status != kWholeFile) return;
  if (::ftruncate(transfer.file.get(), 0) != 0) {
    throw io_error("truncate " + part_of(transfer.what).string());
  }
  transfer.begin = 0;
}

size_t on_data(char* data, size_t, size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  try {
    drop_begin_if_whole(transfer);
    write_all(transfer.file.get(), data, size, part_of(transfer.what).string());
  } catch (...) {
    transfer.write_failure = std::current_exception();
    return 0;  // ends the transfer
  }
  transfer.received += static_cast<int64_t>(size);
  return size;
}

int on_progress(void* context, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(context);
  if (transfer.what.progress && transfer.received > 0) {
    transfer.what.progress(transfer.begin + transfer.received,
                           total > 0 ? transfer.begin + static_cast<int64_t>(total) : 0);
  }
  return 0;
}

void set_limits(CURL* curl, const Download& what) {
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(what.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(what.stall_timeout.count()));
}

void set_receivers(Transfer& transfer) {
  CURL* curl = transfer.curl;
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
}

enum class Outcome { kDone, kBrokeOff, kNothing };

struct Result {
  Outcome outcome;
  std::string why;
};

Result run(Transfer& transfer) {
  CURL* curl = transfer.curl;
  std::array<char, CURL_ERROR_SIZE> message{};
  const std::string range = fmt::format("{}-", transfer.begin);
  set_limits(curl, transfer.what);
  set_receivers(transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message.data());
  curl_easy_setopt(curl, CURLOPT_URL, transfer.what.url.c_str());
  if (transfer.begin > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  const CURLcode code = curl_easy_perform(curl);
  if (transfer.write_failure) std::rethrow_exception(transfer.write_failure);
  if (code == CURLE_OK) return {Outcome::kDone, ""};
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // No bytes follow the part: it may be complete. The checksum decides.
  if (status == kRangeNotSatisfiable && transfer.begin > 0) return {Outcome::kDone, ""};
  return {transfer.received > 0 ? Outcome::kBrokeOff : Outcome::kNothing,
          message[0] != '\0' ? message.data() : curl_easy_strerror(code)};
}

Result attempt(const Download& what) {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(
      once == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (!curl) throw Error(ErrorCode::kInternal, "libcurl cannot be started");
  const fs::path part = part_of(what);
  Transfer transfer{what,
                    curl.get(),
                    UniqueFd(::open(part.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
                    size_of(part),
                    0,
                    nullptr};
  if (!transfer.file) throw io_error("create " + part.string());
  return run(transfer);
}

/// Repeats attempts until done, or up to their limit. If the first one gets no byte, it is the only
/// one.
Result transfer_all(const Download& what) {
  Result result = attempt(what);
  if (result.outcome == Outcome::kNothing) return result;
  for (int i = 1; i < what.attempts && result.outcome != Outcome::kDone; ++i) {
    std::this_thread::sleep_for(what.pause);
    result = attempt(what);
  }
  if (result.outcome == Outcome::kNothing) result.outcome = Outcome::kBrokeOff;
  return result;
}

/// The damage of a file by its known digests; empty: none.
std::string damage_of(const Download& what, const fs::path& file) {
  const auto differs = [&](const char* name, const std::string& is, const std::string& expected) {
    return is.starts_with(expected) ? ""
                                    : fmt::format("has {} {}, expected {}", name, is, expected);
  };
  std::string why;
  if (!what.md5.empty()) why = differs("MD5", md5_of(file), what.md5);
  if (why.empty() && !what.sha256.empty()) why = differs("SHA-256", sha256_of(file), what.sha256);
  return why;
}

std::string digest_of(const std::filesystem::path& path, HashKind kind) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw io_error("open " + path.string());
  return hash_file(file.get(), path.string(), kind).hex;
}

}  // namespace

std::optional<std::string> download(const Download& what) {
  const fs::path part = part_of(what);
  for (bool resumed = size_of(part) > 0;; resumed = false) {
    const Result result = transfer_all(what);
    if (result.outcome == Outcome::kNothing) {
      if (size_of(part) == 0) fs::remove(part);
      return result.why;
    }
    if (result.outcome == Outcome::kBrokeOff) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} broke off after {}: {}; the next run continues from there",
                              what.url, format_bytes(size_of(part)), result.why));
    }
    const std::string why = damage_of(what, part);
    if (why.empty()) break;
    fs::remove(part);
    if (resumed) continue;  // those bytes may have been another file's beginning
    throw Error(ErrorCode::kCorrupt, fmt::format("{} {}; it was removed", what.url, why));
  }
  fs::rename(part, what.path);
  return std::nullopt;
}

std::string md5_of(const std::filesystem::path& path) {
  return digest_of(path, HashKind::kMd5);
}

std::string sha256_of(const std::filesystem::path& path) {
  return digest_of(path, HashKind::kSha256);
}

FolderLock take_turn(const std::filesystem::path& folder, Deadline deadline) {
  auto lock = FolderLock::await(folder, deadline, [&] {
    log_info(fmt::format("waiting for another process that prepares data in {}", folder.string()));
  });
  if (lock && !lock->excludes()) {  // two processes would fill one file
    throw Error(ErrorCode::kIo,
                fmt::format("lock {}: its file system has no locks (flock)", folder.string()));
  }
  if (lock) return std::move(*lock);
  throw Error(ErrorCode::kTimeout,
              fmt::format("another process is still preparing data in {}", folder.string()));
}

}  // namespace lockstep::inline internal
