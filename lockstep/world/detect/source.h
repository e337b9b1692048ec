#pragma once
// Where an identity can come from: one pure function for each launcher of the field.
//
// To add a launcher: declare one function here, write it in the source of its kind, and give it a
// line in the table of decision.cpp.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/world/detect/reader.h"
#include "lockstep/world/identity.h"

namespace lockstep {

struct Source {
  const char* name;                    ///< As LOCKSTEP_LAUNCHER takes it.
  const char* about;                   ///< Half a line for people.
  std::span<const char* const> signs;  ///< One of these variables is set where it is here.
  std::optional<Identity> (*read)(const Reader&);  ///< See below.
  /// It starts processes that belong together, from wherever it was started itself: what a batch
  /// system says to it is not about these.
  bool starts_ranks = false;
};

/// All sources, in the order of precedence.
std::span<const Source> sources();

// Each is called where one of its signs is set. Returns nothing when it is not the launcher after
// all (reader.note() says why), and throws kInvalidArgument when it is but rank or size are
// missing or impossible. Fills rank, size, places, job, `master`; not `meeting` and secret.
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

}  // namespace lockstep
