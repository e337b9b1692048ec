#pragma once
// Preparation of CIFAR-10 on this machine.

#include <filesystem>
#include <string>

#include "lockstep/base/literals.h"
#include "lockstep/data/fetch/synthetic.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

enum class DataSource {
  kFound,       ///< It was there.
  kDownloaded,  ///< The official archive, or the named one.
  kGenerated,   ///< Synthetic data.
};

struct PrepareOptions {
  std::filesystem::path dir = "data/cifar10";
  bool generate = false;  ///< Do not use the network.
  /// Address of the archive; empty: the official one. A given address never falls back to
  /// synthetic data.
  std::string url{};
  std::string md5{};  ///< Of that archive; empty: the official one's.
  SyntheticOptions synthetic{};
  std::chrono::milliseconds connect_timeout{4000};
};

struct PreparedData {
  std::filesystem::path dir;  ///< Holds the files: options.dir or its sub-folder.
  DataSource source = DataSource::kFound;
  bool synthetic = false;  ///< Generated, now or by an earlier call.
};

/// Makes sure that `dir` holds CIFAR-10: the existing files, else a download, else, without a
/// network, synthetic data. Logs the result, and warns of synthetic data every time.
///
/// `dir` appears complete: all is written into DIR.tmp and renamed at the end. An unfinished
/// download is DIR.tar.gz.HOST.part, and a later call continues it. Concurrent calls of several
/// processes for one folder take turns; the later ones find it done. `deadline` limits that wait
/// alone.
/// Errors: kInvalidArgument (`dir` holds other files), kTimeout (another process still prepares
/// it), kUnavailable, kCorrupt, kIo as in download() and unpack_cifar10().
PreparedData prepare_cifar10(const PrepareOptions& options,
                             Deadline deadline = Deadline::after(3600s));

}  // namespace lockstep::inline internal
