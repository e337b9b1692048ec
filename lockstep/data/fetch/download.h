#pragma once
// One file over HTTP(S): resumable, verified, complete or absent.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/folder.h"
#include "lockstep/base/host_name.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

struct Download {
  std::string url;
  std::filesystem::path path;  ///< The target, once it is complete and verified.
  std::string md5{};           ///< 32 hex digits, lower case; empty: not known.
  std::string sha256{};        ///< The known leading hex digits; may be empty.
  std::chrono::milliseconds connect_timeout{4000};
  std::chrono::seconds stall_timeout{30};  ///< An attempt ends after this time below 1 KB/s.
  /// In the name of the file that grows, PATH.HOST.part: locks of a folder do not reach the other
  /// hosts that share it by NFS.
  std::string host = host_name();
  int attempts = 3;                       ///< Most attempts to resume a transfer that breaks off.
  std::chrono::milliseconds pause{1000};  ///< Between attempts.
  /// Called often with the bytes on disk and in all (0: not known). May be empty.
  std::function<void(int64_t done, int64_t total)> progress{};
};

/// Fetches the file. PATH.HOST.part of an earlier try is continued (HTTP Range) if the server can.
///
/// Returns nothing if PATH is there. Without a single byte it returns the reason ("Could not
/// resolve host: ..."): there is no network, or not this file. Follows redirects and the usual
/// variables (https_proxy, no_proxy).
/// Errors: kUnavailable (broke off too often; the part stays, a later call continues), kIo (disk
/// full), kCorrupt. The latter: a given digest differs even after a transfer from the start;
/// the part is removed.
std::optional<std::string> download(const Download& what);

/// Digest of a file, in hex digits; MD5 protects against damage, not against malice. Errors: kIo.
std::string md5_of(const std::filesystem::path& path);
std::string sha256_of(const std::filesystem::path& path);

/// Takes turns with other processes that fill `folder`, until the result is destroyed. A log line
/// reports a wait. Errors: kTimeout, kIo.
FolderLock take_turn(const std::filesystem::path& folder, Deadline deadline);

}  // namespace lockstep::inline internal
