#pragma once
// Probes of the environment for an identity: one pure function for each launcher.
//
// To add a launcher: declare one function here, write it in the file of its kind, and add a line to
// the table of decision.cpp.

#include <optional>
#include <span>

#include "lockstep/world/detect/reader.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

struct LauncherProbe {
  const char* name;                    ///< As in LOCKSTEP_LAUNCHER.
  const char* about;                   ///< Half a line for users.
  std::span<const char* const> signs;  ///< One of these variables is set if the launcher was used.
  std::optional<Identity> (*read)(const Reader&);  ///< See below.
  /// It starts a group of processes, wherever it runs itself: a batch system's data about the
  /// launcher is not about them.
  bool starts_ranks = false;
};

/// All launchers, in the order of precedence.
std::span<const LauncherProbe> launcher_probes();

// Each is called if one of its signs is set. Returns nothing if it is not the launcher after all
// (reader.note() has the reason). Throws kInvalidArgument if it is, but rank or size are missing or
// impossible. Fills rank, size, places, job, `master`; not `bootstrap` and secret.
std::optional<Identity> read_agent(const Reader& read);
std::optional<Identity> read_torch(const Reader& read);
std::optional<Identity> read_open_mpi(const Reader& read);
std::optional<Identity> read_pmi(const Reader& read);
std::optional<Identity> read_slurm(const Reader& read);
std::optional<Identity> read_lsf(const Reader& read);
std::optional<Identity> read_pmix(const Reader& read);
std::optional<Identity> read_mindspore(const Reader& read);
std::optional<Identity> read_ascend(const Reader& read);
std::optional<Identity> read_kubernetes(const Reader& read);
std::optional<Identity> read_horovod(const Reader& read);

}  // namespace lockstep::inline internal
