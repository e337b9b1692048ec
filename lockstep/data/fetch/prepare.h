#pragma once
// Getting CIFAR-10 onto this machine.

#include <filesystem>
#include <string>

#include "lockstep/base/literals.h"
#include "lockstep/data/fetch/stand_in.h"
#include "lockstep/deadline.h"

namespace lockstep {

enum class DataSource {
  kFound,       ///< It was there.
  kDownloaded,  ///< The official archive, or the one named.
  kGenerated,   ///< The stand-in.
};

struct PrepareOptions {
  std::filesystem::path dir = "data/cifar10";
  bool generate = false;  ///< Do not ask the network.
  /// Where the archive is; empty: the official place. A place that the user names never falls back
  /// to the stand-in.
  std::string url{};
  std::string md5{};  ///< Of that archive; empty: the official one's.
  StandInOptions stand_in{};
  std::chrono::milliseconds connect_timeout{4000};
};

struct PreparedData {
  std::filesystem::path dir;  ///< Holds the files: options.dir or its sub-folder.
  DataSource source = DataSource::kFound;
  bool stand_in = false;  ///< Generated pictures, now or by an earlier call.
};

/// Makes sure that `dir` holds CIFAR-10: what is there, else a download, else, when the network
/// cannot be reached, a generated stand-in. Says in the log what it did, and warns of a stand-in
/// every time.
///
/// `dir` appears whole: all is written into DIR.tmp and renamed at the end. An unfinished download
/// is DIR.tar.gz.part and is continued by a later call. Processes that call this at once for one
/// folder take turns; the later ones find it done. `deadline` bounds that wait alone.
/// Errors: kInvalidArgument (`dir` holds other files), kTimeout (another process is at it),
/// kUnavailable, kCorrupt, kIo as download() and unpack_cifar10() say.
PreparedData prepare_cifar10(const PrepareOptions& options,
                             Deadline deadline = Deadline::after(3600s));

}  // namespace lockstep
