#include "lockstep/data/fetch/prepare.h"

#include <fmt/format.h>

#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/fetch/archive.h"
#include "lockstep/data/fetch/download.h"
#include "lockstep/data/fetch/transfer_bar.h"
#include "lockstep/data/synthetic_note.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUrl = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
constexpr const char* kMd5 = "c32a1d4ab5d03f1284b67883e8d87530";

/// Errors: kInvalidArgument unless `dir` is absent or an empty folder.
void require_vacant(const fs::path& dir) {
  std::error_code failure;
  if (!fs::exists(dir, failure)) return;
  if (fs::is_directory(dir) && fs::is_empty(dir)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} exists and holds no CIFAR-10 files (data_batch_1.bin, ...); name "
                          "another folder",
                          dir.string()));
}

/// Nothing if `archive` is there, else the reason why it is not.
std::optional<std::string> fetch_archive(const PrepareOptions& options, const fs::path& archive) {
  TransferBar bar(archive.filename().string());
  Download what{.url = options.url.empty() ? kUrl : options.url,
                .path = archive,
                .md5 = options.md5.empty() ? kMd5 : options.md5};
  what.connect_timeout = options.connect_timeout;
  what.progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  log_info(fmt::format("downloading {}", what.url));
  return download(what);
}

bool try_download(const PrepareOptions& options, const fs::path& dir) {
  const fs::path archive = dir.string() + ".tar.gz";
  if (const auto why = fetch_archive(options, archive)) {
    if (!options.url.empty()) {
      throw Error(ErrorCode::kUnavailable, fmt::format("{} cannot be had: {}", options.url, *why));
    }
    log_warn(fmt::format("no download: {}", *why));
    return false;
  }
  try {
    fill_folder(dir, [&](const fs::path& folder) { unpack_cifar10(archive, folder); });
  } catch (...) {
    std::error_code ignored;
    fs::remove(archive, ignored);
    throw;
  }
  fs::remove(archive);
  log_info(fmt::format("CIFAR-10 is in {}", dir.string()));
  return true;
}

void generate(const PrepareOptions& options, const fs::path& dir) {
  fill_folder(dir,
              [&](const fs::path& folder) { write_synthetic_cifar10(folder, options.synthetic); });
  log_info(fmt::format("generated {} training and {} test records in {}",
                       options.synthetic.train_records, options.synthetic.test_records,
                       dir.string()));
}

DataSource make(const PrepareOptions& options, const fs::path& dir) {
  require_vacant(dir);
  if (!options.generate && try_download(options, dir)) return DataSource::kDownloaded;
  generate(options, dir);
  return DataSource::kGenerated;
}

/// Looks, takes the lock, and looks again: another process may have been faster.
PreparedData find_or_make(const PrepareOptions& options, const fs::path& dir, Deadline deadline) {
  if (auto found = find_cifar10(dir); !found.empty()) return {found, DataSource::kFound, false};
  make_folder(dir.parent_path());
  const FolderLock lock = take_turn(dir.parent_path(), deadline);
  if (auto found = find_cifar10(dir); !found.empty()) return {found, DataSource::kFound, false};
  return {dir, make(options, dir), false};
}

}  // namespace

PreparedData prepare_cifar10(const PrepareOptions& options, Deadline deadline) {
  const fs::path dir = absolute_folder(options.dir, "the folder of the data set");
  PreparedData data = find_or_make(options, dir, deadline);
  data.synthetic = is_synthetic(data.dir);
  if (data.synthetic) log_warn(synthetic_warning(data.dir));
  return data;
}

}  // namespace lockstep::inline internal
