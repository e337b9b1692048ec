#pragma once
// The processes that wrote flight recorders, as far as this process sees them.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/namespaces.h"
#include "lockstep/comm/flight/record.h"

namespace lockstep::app {

/// Looks for them by the number in their recorder. A container (a pid namespace) numbers its
/// processes by itself; those of one within this process's numbering are found all the same.
///
/// Processes of other containers are not visible. Nor is what a process of another user has open,
/// but for root. Such a writer may be alive or dead.
class RecordWriters {
 public:
  /// `path`: of the recorder with this record, on this host. If the process that wrote it lives,
  /// `pid` becomes its number here, and `process` its state. If it has ended, `alive` becomes
  /// false, and `process` "dead". False: it is not visible; the record stays as it was.
  bool look_at(FlightRecord& record, const std::filesystem::path& path);

 private:
  std::optional<int> number_here(const FlightRecord& record, const std::filesystem::path& path);
  void read_numbers();
  bool sees_all(uint64_t space, const std::filesystem::path& path) const;

  const uint64_t space_ = pid_space();
  std::map<std::pair<uint64_t, int>, int> numbers_;  ///< Here, by numbering and number in it.
  std::set<uint64_t> spaces_;                        ///< Of all visible processes.
};

}  // namespace lockstep::app
