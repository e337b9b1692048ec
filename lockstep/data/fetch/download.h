#pragma once
// One file over HTTP(S): resumable, verified, whole or not there.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep {

struct Download {
  std::string url;
  std::filesystem::path path;  ///< Where it goes; until it is whole and verified, PATH.part.
  std::string md5{};           ///< 32 hex digits, lower case; empty: not known.
  std::string sha256{};        ///< The leading hex digits that are known; it may be none.
  std::chrono::milliseconds connect_timeout{4000};
  std::chrono::seconds stall_timeout{30};  ///< An attempt ends after so long below 1 KB/s.
  int attempts = 3;                        ///< A transfer that breaks off is resumed so often.
  std::chrono::milliseconds pause{1000};   ///< Between attempts.
  /// Told of bytes on disk and in all (0: not known), often. May be empty.
  std::function<void(int64_t done, int64_t total)> progress{};
};

/// Fetches the file. PATH.part of an earlier try is continued (HTTP Range) where the server can.
///
/// Returns nothing when PATH is there, or, when not one byte could be had, why ("Could not resolve
/// host: ..."): there is no network, or not this file. Follows redirects and the usual variables
/// (https_proxy, no_proxy).
/// Errors: kUnavailable (broke off too often; PATH.part stays, a later call continues), kCorrupt
/// (a wrong one of the digests that are given, even of a transfer from the start; PATH.part is
/// removed), kIo (disk full).
std::optional<std::string> download(const Download& what);

/// Of a file, in hex digits; MD5 is against damage, not malice. Errors: kIo.
std::string md5_of(const std::filesystem::path& path);
std::string sha256_of(const std::filesystem::path& path);

/// Takes turns with other processes that fill `folder`, until what it returns is destroyed. The
/// lock is on the folder itself, so that it leaves no file behind and ends with its holder. A line
/// says when it waits. Errors: kTimeout, kIo.
UniqueFd take_turn(const std::filesystem::path& folder, Deadline deadline);

}  // namespace lockstep
