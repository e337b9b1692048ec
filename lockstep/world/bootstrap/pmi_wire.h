#pragma once
// PMI-1, the text protocol of hydra's proxies and Slurm's mpi/pmi2 plugin, mostly on PMI_FD: lines
// "cmd=NAME key=value ...". Source: src/pmi of MPICH.

#include <map>
#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// "cmd=get_result rc=0 value=x" as a map. Errors: kCorrupt if a word is not NAME=VALUE or "cmd" is
/// missing.
std::map<std::string, std::string> parse_pmi_line(const std::string& line);

/// A client's side. From the first call until finish(), the process manager treats the end of this
/// process as a crash and ends the job. After finish() nobody else can use the descriptor.
class PmiWire {
 public:
  explicit PmiWire(int fd) : fd_(fd) {}

  struct Introduction {
    int rank = 0;
    int size = 1;
  };
  /// On a connection to PMI_PORT, before anything else: the rank of process `id` (PMI_ID).
  Introduction introduce(int id, Deadline deadline);

  /// Errors of all: kTimeout, kIo, kCorrupt, and kUnavailable if the manager refuses.
  void init(Deadline deadline);
  void put(const std::string& key, const std::string& value, Deadline deadline);
  void barrier(Deadline deadline);  ///< All ranks; earlier puts can be read after it.
  std::string get(const std::string& key, Deadline deadline);
  void finish(Deadline deadline);

 private:
  std::map<std::string, std::string> ask(const std::string& line, const std::string& answer,
                                         Deadline deadline);
  std::string read_line(Deadline deadline);

  int fd_;
  std::string kvs_name_;
  std::string input_;
};

/// A connection to PMI_PORT, of `mpiexec.hydra -pmi-port`. There the environment has neither rank
/// nor size, and no descriptor is inherited; the manager sends the rank of PMI_ID. There may be
/// several, one after another; each must be finished. Source: src/pmi of MPICH.
class PmiPort {
 public:
  /// `environment`: with PMI_PORT and PMI_ID. Errors: kInvalidArgument (invalid values), kTimeout,
  /// kUnavailable, kIo, kCorrupt.
  PmiPort(const Environment& environment, Deadline deadline);

  PmiWire& wire() { return wire_; }
  const PmiWire::Introduction& own() const { return own_; }

 private:
  UniqueFd fd_;
  PmiWire wire_;
  PmiWire::Introduction own_;
};

}  // namespace lockstep::inline internal
