#include "lockstep/train/fetch/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/data/fetch/download.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/error.h"
#include "lockstep/train/config/weights.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// Downloads `path` if missing. Returns "" on success, else the reason of the failure.
std::string fetch(const std::string& address, const fs::path& path, Deadline deadline) {
  make_folder(path.parent_path());
  const auto turn = take_turn(path.parent_path(), deadline);
  if (fs::exists(path)) return "";  // another process has fetched it
  TransferBar bar(path.filename().string());
  Download what{.url = address, .path = path};
  what.sha256 = digest_in_name(path.filename().string());
  what.progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  log_info(fmt::format("downloading {}", address));
  const auto why = download(what);
  if (!why) log_info(fmt::format("the weights are in {}", path.string()));
  return why.value_or("");
}

}  // namespace

std::string digest_in_name(const std::string& file) {
  constexpr size_t kDigits = 8;
  const std::string digits = "0123456789abcdef";
  for (size_t dash = file.find('-'); dash != std::string::npos; dash = file.find('-', dash + 1)) {
    const size_t end = std::min(file.find_first_not_of(digits, dash + 1), file.size());
    if (end - dash - 1 != kDigits || (end < file.size() && file[end] != '.' && file[end] != '-')) {
      continue;
    }
    std::string found = file.substr(dash + 1, kDigits);
    if (found.find_first_of("abcdef") != std::string::npos) return found;
  }
  return "";
}

void fetch_pretrained(const Config& config, Deadline deadline) {
  for (const auto& missing : find_missing(config)) {
    std::string why;
    if (missing.is_address) why = fetch(missing.given, weights_path(missing.given), deadline);
    if (missing.is_address && why.empty()) continue;
    throw Error(ErrorCode::kNotFound, describe(missing, why));
  }
}

}  // namespace lockstep::inline internal
